"""What findings and incidents claim, and the evidence in a capture that each claim rests on."""
