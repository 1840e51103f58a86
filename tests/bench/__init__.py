"""Long measurements as modules that are run by hand; their light tests run with the suite."""
