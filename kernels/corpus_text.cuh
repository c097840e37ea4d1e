// Text of a segment, and the way to a byte of a document.
//
// The grammar as the CPU has it: symbols of all rules, root first, `rule_offsets`, `doc_offsets` into
// the root; `starts[p]` where the expansion at position p of `symbols` starts, in bytes from the first
// position, wrapping: differences inside a rule or a document are exact, and the start of what follows
// a rule is its end; a bit in `blanks` for each position before which a blank is implied. Terminals
// are bytes `token_offsets[t]` to `token_offsets[t + 1]` of `tokens`.

// The same struct is in src/cuda/corpus/launch.rs.
struct CorpusText {
    const u32* symbols;
    const u32* rule_offsets;
    const u32* doc_offsets;
    const u64* starts;
    const u32* blanks;
    const u32* token_offsets;
    const u8* tokens;
    u32 num_terminals;
};

static __device__ __forceinline__ bool has_blank(const CorpusText& text, u32 position)
{
    return text.blanks[position / 32] >> (position % 32) & 1;
}
