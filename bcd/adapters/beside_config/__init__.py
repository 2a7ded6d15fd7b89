"""Files that lie beside `config.toml`."""
