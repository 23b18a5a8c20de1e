"""What do people want to know of one Kafka message? Its fields, what it may be, what would mend it."""
