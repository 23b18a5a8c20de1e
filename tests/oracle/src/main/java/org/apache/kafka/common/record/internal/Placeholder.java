package org.apache.kafka.common.record.internal;

/**
 * Kafka 4.x keeps its record classes in this package, 3.9 in the one above. Our sources import both with a star, and
 * the compiler wants each package to exist: this class makes it so.
 */
final class Placeholder {
    private Placeholder() {}
}
