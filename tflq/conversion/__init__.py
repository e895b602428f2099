"""The call: `convert`, its report, its cost, and what packages of users add."""
