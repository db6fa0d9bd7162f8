// SPDX-License-Identifier: Apache-2.0
#include "rcn/rcn_hash.h"

#include "rcn_test.h"

/* The vectors that the authors of FNV publish. */
static void known_answers(void) {
    CHECK(rcn_hash_bytes(RCN_HASH_START, "", 0) == UINT64_C(0xcbf29ce484222325));
    CHECK(rcn_hash_bytes(RCN_HASH_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    CHECK(rcn_hash_bytes(RCN_HASH_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
}

static void in_pieces(void) {
    const float numbers[3] = {1.5f, -0.0f, 0.0f};
    const uint64_t begun = rcn_hash_bytes(RCN_HASH_START, "foo", 3);
    CHECK(rcn_hash_bytes(begun, "bar", 3) == rcn_hash_bytes(RCN_HASH_START, "foobar", 6));
    const uint64_t first = rcn_hash_floats(RCN_HASH_START, numbers, 1);
    CHECK(rcn_hash_floats(first, numbers + 1, 2) == rcn_hash_floats(RCN_HASH_START, numbers, 3));
    /* 1.5f is 0x3fc00000. */
    CHECK(first == (RCN_HASH_START ^ UINT64_C(0x3fc00000)) * UINT64_C(0x100000001b3));
    CHECK(rcn_hash_floats(first, numbers + 1, 1) != rcn_hash_floats(first, numbers + 2, 1));
}

int main(void) {
    RUN(known_answers);
    RUN(in_pieces);
    return TEST_RESULT;
}
