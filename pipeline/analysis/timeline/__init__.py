"""Where does each partition, and each group that reads it, stand over time?"""
