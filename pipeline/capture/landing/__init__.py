"""Landing files that appear whole, with their manifests, in a folder or an object store."""
