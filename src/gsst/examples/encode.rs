//! Encodes rows of text as a block, and reads and searches it: `cargo run -p gsst --example encode`.

use gsst::{Block, BlockOptions, CodeWidth, Pattern, write_block};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = (0..5_000).map(|i| format!("customer {i} of the harbour district")).collect();
    // A row that is null stands at the end.
    let rows: Vec<Option<&[u8]>> = names.iter().map(|name| Some(name.as_bytes())).chain([None]).collect();

    for width in [CodeWidth::Eight, CodeWidth::Twelve] {
        // The symbol table is trained on the rows, and lies in the block.
        let block = Block::open(write_block(&rows, &BlockOptions::new(width))?)?;
        let text_bytes = block.text_len_bytes();
        let block_bytes = block.as_bytes().len();
        println!("{} bits: {text_bytes} bytes of text in a block of {block_bytes}", width.bits());
        assert!(block_bytes < text_bytes);

        // A row decodes alone.
        let mut text = Vec::new();
        assert!(block.decode_row(4_321, &mut text)?);
        assert_eq!(text, names[4_321].as_bytes());
        assert!(!block.decode_row(5_000, &mut text)?);

        // A pattern runs on the codes. Only its rows are decoded.
        let found = block.rows_like(&Pattern::like("%r 123_ of%", None)).rows();
        let decoded = block.decode_selected(&found)?;
        for row in decoded.offsets.windows(2).take(2) {
            let text = &decoded.text[row[0] as usize..row[1] as usize];
            println!("  {}", String::from_utf8_lossy(text));
        }
        assert_eq!(found, (1_230..1_240).collect::<Vec<u32>>());
    }
    Ok(())
}
