"""Each frame once, decoded or with the reason why not."""
