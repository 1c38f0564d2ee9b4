const NEWLINE = 0x0a
const SPACE = 0x20

/** Item k: its number, padded with spaces to `size` bytes, newline last. Longer than `size` if the number needs it. */
export function makeItem(k: number, size: number): Buffer {
  const digits = String(k)
  const length = Math.max(size, digits.length + 1)
  const item = Buffer.allocUnsafe(length)
  item.write(digits, 'latin1')
  item.fill(SPACE, digits.length, length - 1)
  item[length - 1] = NEWLINE
  return item
}
