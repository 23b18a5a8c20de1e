"""Which landing files are to be read, and which of them are what their manifests state?"""
