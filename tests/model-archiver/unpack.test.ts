import { existsSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import * as zlib from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { unpackArchive } from '../../model-archiver/unpack.ts'
import { unpackInto } from '../../model-archiver/unpack-into.ts'
import { DEFAULT_UNPACK_LIMITS, type UnpackLimits } from '../../model-archiver/unpack-budget.ts'
import { type RawEntry, rawTgz, rawZip, tarHeader } from './archives-by-hand.ts'
import { failure, readTree, tempFolder } from './temp.ts'
import { execFileSync, spawnSync } from '../support/tools.ts'

const LINK = 0o120777
const GOOD = { name: 'm/good.txt', content: 'good' }

/** Unpacks bytes; the folder that is returned holds the archive and what came of it. */
async function unpack(bytes: Buffer, limits?: Partial<UnpackLimits>): Promise<string> {
  const folder = tempFolder({ 'x.mar': bytes })
  await unpackArchive(join(folder, 'x.mar'), join(folder, 'out'), { limits, unpack: unpackInto })
  return join(folder, 'out')
}

/** Unpacks what must be refused, and checks that nothing is left of it. */
async function refused(
  bytes: Buffer,
  limits?: Partial<UnpackLimits>,
): Promise<{ code: string; message: string }> {
  const folder = tempFolder({ 'x.mar': bytes })
  const error = await failure(
    unpackArchive(join(folder, 'x.mar'), join(folder, 'out'), { limits, unpack: unpackInto }),
  )
  expect(readdirSync(folder)).toEqual(['x.mar'])
  return error
}

/** A tar of one entry with these bytes in the field of its size. */
function tgzWithSize(size: Buffer): Buffer {
  const header = tarHeader('m/a', 0)
  size.copy(header, 124)
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return gzipSync(Buffer.concat([header, Buffer.alloc(1024)]))
}

function tgzWithPaxSize(size: string): Buffer {
  const field = ` size=${size}\n`
  const content = `${field.length + 2}${field}`
  return rawTgz([{ name: 'x', type: 'x', content }, { name: 'm/a' }])
}

describe.each([
  ['zip', rawZip],
  ['tgz', (entries: RawEntry[]) => rawTgz(entries.map((entry) => ({ ...entry, name: `m/${entry.name}` })))],
])('%s', (_format, make) => {
  test('unpacks files and folders', async () => {
    const bytes = make([
      { name: 'MAR-INF/MANIFEST.json', content: '{}' },
      { name: 'a/b/c.bin', content: 'x'.repeat(300_000) },
      { name: 'empty', content: '' },
    ])
    expect(readTree(await unpack(bytes))).toEqual({
      'MAR-INF/MANIFEST.json': '{}',
      'a/b/c.bin': 'x'.repeat(300_000),
      empty: '',
    })
  })

  test.each(['a/../../evil', '../evil', 'a\\..\\evil', 'nul', 'C:/evil', 'a//evil'])(
    'refuses the name %j',
    async (name) => {
      const error = await refused(
        make([
          { name: 'good', content: 'g' },
          { name, content: 'evil' },
        ]),
      )
      expect(error.code).toBe('INVALID_ARCHIVE')
      expect(error.message).toContain(JSON.stringify(name).slice(1, -1))
      expect(error.message).toContain('is refused')
    },
  )

  test('refuses a name twice, also in other letters', async () => {
    const same = await refused(make([GOOD, GOOD]))
    expect(same.message).toContain('twice')
    const folded = await refused(make([GOOD, { ...GOOD, name: 'm/GOOD.txt' }]))
    expect(folded.message).toContain('letter case')
  })

  test('refuses more files or bytes than the limits', async () => {
    const entries = [1, 2, 3].map((n) => ({ name: `f${n}`, content: 'x'.repeat(1000) }))
    expect((await refused(make(entries), { maxFiles: 2 })).message).toContain(
      'more than 2 files and folders. If you trust it, raise max_archive_files',
    )
    expect((await refused(make(entries), { maxBytes: 2999 })).message).toContain('more than 2999 bytes')
    expect(Object.keys(readTree(await unpack(make(entries), { maxFiles: 3, maxBytes: 3000 })))).toHaveLength(
      3,
    )
  })

  test('refuses a truncated archive', async () => {
    const bytes = make([{ name: 'a', content: 'x'.repeat(50_000) }, GOOD])
    for (const part of [0.2, 0.5, 0.9, 0.99]) {
      const error = await refused(bytes.subarray(0, Math.floor(bytes.length * part)))
      expect(error.code).toBe('INVALID_ARCHIVE')
    }
  })

  test('refuses to unpack onto something', async () => {
    const folder = tempFolder({ 'x.mar': make([GOOD]), 'out/mine': 'mine' })
    await failure(unpackArchive(join(folder, 'x.mar'), join(folder, 'out')))
    expect(readTree(folder)['out/mine']).toBe('mine')
    expect(readdirSync(folder).sort()).toEqual(['out', 'x.mar'])
  })
})

describe('zip', () => {
  test('refuses control characters in the bytes of a name, which CP437 shows as signs', async () => {
    for (const letter of ['\u0001', '\n', '\u001b', '\u007f'])
      for (const flags of [0, 0x800]) {
        const error = await refused(rawZip([{ name: `a${letter}b.py`, content: 'x', flags }]))
        expect(error.message).toMatch(/is refused: the name has control characters or marks of direction\.$/)
      }
    expect(readdirSync(await unpack(rawZip([{ name: 'naïve', content: 'x', flags: 0 }])))).toEqual(['na├»ve'])
  })

  test('refuses an absolute name', async () => {
    expect((await refused(rawZip([{ name: '/tmp/evil', content: 'x' }]))).message).toBe(
      'Archive entry "/tmp/evil" is refused: the name is absolute.',
    )
  })

  test('refuses links and devices', async () => {
    const link = await refused(rawZip([{ name: 'l', content: '/etc/passwd', mode: LINK }]))
    expect(link.message).toBe('Archive entry "l" is refused: it is a link.')
    const device = await refused(rawZip([{ name: 'd', mode: 0o020644 }]))
    expect(device.message).toContain('neither a file nor a folder')
  })

  test('refuses content that is longer or shorter than declared', async () => {
    const bomb = { name: 'bomb', content: Buffer.alloc(5_000_000), declaredSize: 10 }
    expect((await refused(rawZip([bomb]), { maxBytes: 1000 })).code).toBe('INVALID_ARCHIVE')
    const short = { name: 'short', content: 'abc', declaredSize: 10 }
    expect((await refused(rawZip([short]))).code).toBe('INVALID_ARCHIVE')
  })

  test('refuses a declared size over the limit before it inflates anything', async () => {
    const error = await refused(rawZip([{ name: 'big', declaredSize: 0xf0000000 }]), { maxBytes: 1_000_000 })
    expect(error.message).toContain('more than 1000000 bytes')
  })

  test('refuses encrypted entries and unknown compression', async () => {
    expect((await refused(rawZip([{ name: 'e', content: 'x', flags: 1 }]))).message).toContain('encryption')
    expect((await refused(rawZip([{ name: 'e', content: 'x', method: 12 }]))).message).toContain(
      'not supported',
    )
  })

  const hasCrc = 'crc32' in zlib
  ;(hasCrc ? test : test.skip)('refuses a wrong checksum', async () => {
    expect((await refused(rawZip([{ name: 'c', content: 'x', crc: 1 }]))).message).toContain('checksum')
  })

  const hasPython = spawnSync('python3', ['--version']).status === 0
  ;(hasPython ? test : test.skip)('takes what a common packer writes', async () => {
    const folder = tempFolder({ 'in/MAR-INF/MANIFEST.json': '{}', 'in/run.sh': 'echo' })
    const script = "import shutil,sys; shutil.make_archive(sys.argv[1], 'zip', sys.argv[2])"
    execFileSync('python3', ['-c', script, join(folder, 'x'), join(folder, 'in')])
    await unpackArchive(join(folder, 'x.zip'), join(folder, 'out'))
    expect(readTree(join(folder, 'out'))).toEqual({ 'MAR-INF/MANIFEST.json': '{}', 'run.sh': 'echo' })
  })
})

describe('tgz', () => {
  test('drops the first part of each name', async () => {
    const out = await unpack(
      rawTgz([
        { name: './', type: '5' },
        { name: './a', content: '1' },
        { name: 'x/b', content: '2' },
      ]),
    )
    expect(readTree(out)).toEqual({ a: '1', b: '2' })
  })

  test.each([
    ['an absolute name', { name: '/m/evil', content: 'x' }, 'absolute'],
    ['a first part that leads out', { name: '../evil', content: 'x' }, '..'],
    ['a file beside the leading folder', { name: 'evil', content: 'x' }, 'outside the leading folder'],
    ['a symbolic link', { name: 'm/l', type: '2', link: '/etc/passwd' }, 'it is a link'],
    ['a hard link', { name: 'm/l', type: '1', link: 'm/good.txt' }, 'it is a link'],
    ['a character device', { name: 'm/d', type: '3' }, 'neither a file nor a folder'],
    ['a block device', { name: 'm/d', type: '4' }, 'neither a file nor a folder'],
    ['a pipe', { name: 'm/d', type: '6' }, 'neither a file nor a folder'],
    ['an unknown kind', { name: 'm/d', type: 'Z' }, 'its kind is not supported'],
  ])('refuses %s', async (_what, entry, word) => {
    const error = await refused(rawTgz([GOOD, entry]))
    expect(error.code).toBe('INVALID_ARCHIVE')
    expect(error.message).toContain(word)
  })

  test.each([
    ['no number', tgzWithSize(Buffer.from('x'.repeat(11)))],
    ['negative', tgzWithSize(Buffer.from('fffffffffffffffffffffff0', 'hex'))],
    ['larger than JavaScript counts in its extended header', tgzWithPaxSize('9'.repeat(20))],
  ])('refuses an entry whose size is %s', async (_what, bytes) => {
    const error = await refused(bytes)
    expect([error.code, error.message]).toEqual([
      'INVALID_ARCHIVE',
      expect.stringContaining('it has no size'),
    ])
  })

  test('refuses a header with a wrong checksum', async () => {
    const tar = gunzipSync(rawTgz([GOOD]))
    tar.write('M', 0)
    const error = await refused(gzipSync(tar))
    expect([error.code, error.message]).toEqual([
      'INVALID_ARCHIVE',
      expect.stringContaining('a header has a wrong checksum'),
    ])
  })

  test('takes any number of long names, each for its own entry only', async () => {
    const long = Array.from({ length: 12 }, (_, n) => `${n}${'x'.repeat(120)}`)
    const entries = long.flatMap((name, n) => [
      { name: '././@LongLink', type: 'L', content: `m/${name}\0` },
      { name: 'm/cut', content: `long ${n}` },
      { name: `m/short${n}`, content: `short ${n}` },
    ])
    const out = readTree(await unpack(rawTgz(entries)))
    expect(Object.keys(out)).toHaveLength(24)
    expect(long.map((name) => out[name])).toEqual(long.map((_, n) => `long ${n}`))
    expect(out['short11']).toBe('short 11')
  })

  test('stops at a bomb instead of writing it', async () => {
    const dense = rawTgz([{ name: 'm/text', content: 'some text '.repeat(100_000) + 'x' }])
    expect((await refused(dense, { maxBytes: 1_000_000 })).message).toContain('more than 1000000 bytes')
    const zeros = rawTgz([{ name: 'm/zeros', content: Buffer.alloc(30_000_000) }])
    expect(zeros.length).toBeLessThan(100_000)
    expect((await refused(zeros)).code).toBe('INVALID_ARCHIVE')
  })

  test('keeps of the rights only whether a file may be run', async () => {
    const folder = tempFolder({ 'x.tgz': rawTgz([GOOD]) })
    await unpackArchive(join(folder, 'x.tgz'), join(folder, 'out'))
    expect(statSync(join(folder, 'out/good.txt')).mode & 0o7111).toBe(0)
  })
})

describe('anything else', () => {
  test.each([
    ['text', Buffer.from('hello')],
    ['nothing', Buffer.alloc(0)],
    ['a compressed text', gzipSync('hello')],
    ['the head of a zip', Buffer.from('PK\x03\x04nonsense')],
  ])('%s is refused', async (_what, bytes) => {
    expect((await refused(bytes)).code).toBe('INVALID_ARCHIVE')
  })

  test('an error of the disk is not blamed on the archive', async () => {
    const folder = tempFolder({ 'x.mar': rawZip([GOOD]) })
    const missing = await failure(unpackArchive(join(folder, 'x'), join(folder, 'out')))
    expect([missing.code, missing.message]).toEqual(['INTERNAL', expect.stringContaining('ENOENT')])
    const limits = DEFAULT_UNPACK_LIMITS
    const task = { archive: join(folder, 'x.mar'), folder: join(folder, 'gone'), limits, rules: {} }
    const unwritten = await failure(unpackInto(task))
    expect([unwritten.code, unwritten.message]).toEqual(['INTERNAL', expect.stringContaining('ENOENT')])
    expect(existsSync(join(folder, 'out'))).toBe(false)
  })

  test('an archive that gets shorter on disk is refused', async () => {
    const folder = tempFolder({ 'x.mar': rawZip([GOOD]) })
    writeFileSync(join(folder, 'y.mar'), rawZip([GOOD]))
    truncateSync(join(folder, 'y.mar'), 30)
    expect((await failure(unpackArchive(join(folder, 'y.mar'), join(folder, 'out')))).code).toBe(
      'INVALID_ARCHIVE',
    )
  })
})
