"""What is true of operators wherever they occur: traits, by what they are about."""
