import yauzl from 'yauzl'

/**
 * The text of one file in a zip, read in the thread that asks: a small one of an archive with a bounded directory.
 * @param limits bytes of the file, and entries of the archive
 * @returns undefined when it is not there, or over a limit
 * @throws errors of yauzl and of the file system as they are
 */
export async function readZipEntry(
  file: string,
  name: string,
  { maxBytes, maxFiles }: { readonly maxBytes: number; readonly maxFiles: number },
): Promise<string | undefined> {
  const zip = await yauzl.openPromise(file, { autoClose: false })
  try {
    if (zip.entryCount > maxFiles) return undefined
    for await (const entry of zip.eachEntry()) {
      if (entry.fileName !== name) continue
      if (entry.uncompressedSize > maxBytes || !entry.canDecodeFileData()) return undefined
      const chunks: Buffer[] = []
      for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).toString()
    }
    return undefined
  } finally {
    zip.close()
  }
}
