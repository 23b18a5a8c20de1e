"""Landing files that are to be read, and which of them are what their manifests state."""
