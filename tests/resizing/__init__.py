"""Random graphs as TensorFlow writes them, whose inputs are resized: `drawn` draws one, `losses` says what is lost."""
