const NEWLINE = 0x0a
const SPACE = 0x20

/** The last item without its number; runs make many items of the same size. */
let blank: Buffer = Buffer.alloc(0)

/** Item k: its number, padded with spaces to `size` bytes, newline last. Longer if the number needs it. */
export function makeItem(k: number, size: number): Buffer {
  const digits = String(k)
  const length = Math.max(size, digits.length + 1)
  if (blank.byteLength !== length) blank = makeBlank(length)
  const item: Buffer = Buffer.from(blank)
  for (let i = 0; i < digits.length; i += 1) item[i] = digits.charCodeAt(i)
  return item
}

function makeBlank(length: number): Buffer {
  const bytes = Buffer.alloc(length, SPACE)
  bytes[length - 1] = NEWLINE
  return bytes
}
