package oracle;

/** What the values of one generated message are like; the seed chooses. */
enum Shape {
    /** Null wherever it is allowed, else empty or zero; no tagged field is present. */
    EMPTY,
    /** The greatest numbers, long strings and bytes; every tagged field is present. */
    GREATEST,
    /** The smallest numbers, short strings; every tagged field is present. */
    LEAST,
    /** Random; of the outer arrays about every other has 130 elements, so that a compact length takes two bytes. */
    LONG_ARRAYS,
    /** Random, with unknown tagged fields in the header and in every struct, where the version has a place for them. */
    UNKNOWN_TAGS,
    RANDOM;

    static Shape of(int seed) {
        return values()[Math.min(seed, RANDOM.ordinal())];
    }

    boolean isExtreme() {
        return this == EMPTY || this == GREATEST || this == LEAST;
    }
}
