import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** All changes to the copy of TorchServe's tests (docs/internals/conformance.md). */
export interface Rewrite {
  /** Folders of the copy whose .json and .py files are searched. */
  readonly folders: readonly string[]
  readonly from: string
  readonly to: string
}

const ARCHIVE_HOSTS = [
  'https://torchserve.pytorch.org/',
  'https://torchserve.s3.amazonaws.com/',
  'https://download.pytorch.org/',
]

/** @param mirror URL of the local mirror, with a slash at its end */
export function rewrites(mirror: string): Rewrite[] {
  const folders = ['test/postman', 'test/pytest', 'ts_scripts']
  return [
    ...ARCHIVE_HOSTS.map((from) => ({ folders, from, to: mirror })),
    // It needs no PyTorch; the other tests with this mark do, or read the Java server's log.
    {
      folders: ['test/pytest'],
      from: '@pytest.mark.skip(reason="Skipping this test for now")\ndef test_echo_stream_inference',
      to: 'def test_echo_stream_inference',
    },
    // The request's map contains bytes; Python's protobuf rejects the test's own numbers before anything is
    // sent.
    ...[1, 2, 3].map((n) => ({
      folders: ['test/pytest'],
      from: `input={"data": ${n}}`,
      to: `input={"data": b"${n}"}`,
    })),
  ]
}

export async function rewrite(checkout: string, changes: readonly Rewrite[]): Promise<void> {
  for (const folder of new Set(changes.flatMap(({ folders }) => folders))) {
    const own = changes.filter(({ folders }) => folders.includes(folder))
    for (const name of await readdir(join(checkout, folder))) {
      if (/\.(json|py)$/.test(name)) await rewriteFile(join(checkout, folder, name), own)
    }
  }
}

async function rewriteFile(path: string, changes: readonly Rewrite[]): Promise<void> {
  const before = await readFile(path, 'utf8')
  const after = changes.reduce((text, { from, to }) => text.replaceAll(from, to), before)
  if (after !== before) await writeFile(path, after)
}
