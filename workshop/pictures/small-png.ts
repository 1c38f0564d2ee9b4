import { crc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const COLOURS = 256
/** Of RGB, as Chromium writes it. */
const CHANNELS = 3

/**
 * A picture of Chromium with 256 colours: a third of its bytes, and what is drawn looks the same.
 * https://www.w3.org/TR/png-3/ has the format.
 */
export function smallPng(png: Buffer): Buffer {
  const chunks = chunksOf(png)
  const header = Buffer.from(chunks.find(({ type }) => type === 'IHDR')!.data)
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  if (header[8] !== 8 || header[9] !== 2 || header[12] !== 0)
    throw new Error('The picture must be RGB with 8 bits, not interlaced')
  const packed = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data))
  const pixels = unfiltered(inflateSync(packed), width, height)
  const { palette, indices } = paletteOf(pixels)
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y += 1)
    rows.set(indices.subarray(y * width, (y + 1) * width), y * (width + 1) + 1)
  header[9] = 3
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

interface Chunk {
  readonly type: string
  readonly data: Buffer
}

function chunksOf(png: Buffer): Chunk[] {
  const chunks: Chunk[] = []
  for (let at = SIGNATURE.length; at < png.length;) {
    const end = at + 8 + png.readUInt32BE(at)
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, end) })
    at = end + 4
  }
  return chunks
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const whole = Buffer.alloc(named.length + 8)
  whole.writeUInt32BE(data.length, 0)
  whole.set(named, 4)
  whole.writeUInt32BE(crc32(named), named.length + 4)
  return whole
}

/** Pixels without the filters of their rows. */
function unfiltered(rows: Buffer, width: number, height: number): Buffer {
  const stride = width * CHANNELS
  const pixels = Buffer.alloc(stride * height)
  for (let y = 0; y < height; y += 1) {
    const filter = rows[y * (stride + 1)]!
    for (let x = 0; x < stride; x += 1) {
      const at = y * stride + x
      const left = x < CHANNELS ? 0 : pixels[at - CHANNELS]!
      const above = y === 0 ? 0 : pixels[at - stride]!
      const corner = x < CHANNELS || y === 0 ? 0 : pixels[at - stride - CHANNELS]!
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter]!
      pixels[at] = rows[y * (stride + 1) + 1 + x]! + guess
    }
  }
  return pixels
}

function paeth(left: number, above: number, corner: number): number {
  const guess = left + above - corner
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)]
  if (a <= b && a <= c) return left
  return b <= c ? above : corner
}

/** The most frequent colours, and of each pixel the one that is nearest to it. */
function paletteOf(pixels: Buffer): { palette: Buffer; indices: Buffer } {
  const counts = new Map<number, number>()
  const colours = new Uint32Array(pixels.length / CHANNELS)
  for (const index of colours.keys()) {
    const colour = pixels.readUIntBE(index * CHANNELS, CHANNELS)
    colours[index] = colour
    counts.set(colour, (counts.get(colour) ?? 0) + 1)
  }
  const frequent = [...counts.keys()].sort((one, other) => counts.get(other)! - counts.get(one)!)
  const kept = frequent.slice(0, COLOURS)
  const palette = Buffer.alloc(kept.length * CHANNELS)
  for (const [index, colour] of kept.entries()) palette.writeUIntBE(colour, index * CHANNELS, CHANNELS)
  const places = new Map(frequent.map((colour) => [colour, nearest(colour, kept)]))
  return { palette, indices: Buffer.from(colours.map((colour) => places.get(colour)!)) }
}

function nearest(colour: number, among: readonly number[]): number {
  const distances = among.map((each) => distance(colour, each))
  return distances.indexOf(Math.min(...distances))
}

function distance(one: number, other: number): number {
  const parts = [16, 8, 0].map((shift) => ((one >> shift) & 255) - ((other >> shift) & 255))
  return parts.reduce((sum, part) => sum + part * part, 0)
}
