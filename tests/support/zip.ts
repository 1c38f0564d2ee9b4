import { ZipFile } from 'yazl'
import { buffer } from 'node:stream/consumers'

const PLACEHOLDER = 'zz'

/** A zip with any entry names, also ones that a well-behaved writer refuses. */
export async function zipOf(files: Record<string, string>): Promise<Buffer> {
  const zip = new ZipFile()
  // Names are replaced in the bytes afterwards, because yazl rejects "..".
  for (const [name, content] of Object.entries(files)) {
    zip.addBuffer(Buffer.from(content), name.replaceAll('..', PLACEHOLDER), { compress: false })
  }
  zip.end()
  const bytes = await buffer(zip.outputStream as never)
  return Buffer.from(bytes.toString('latin1').replaceAll(`${PLACEHOLDER}/`, '../'), 'latin1')
}
