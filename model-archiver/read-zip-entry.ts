import yauzl from 'yauzl'

/**
 * The text of one file in a zip. Reads it in this thread, because the limits keep the work small.
 * @param limits maximum bytes of the file, and maximum entries of the archive
 * @returns undefined when the file is missing or over a limit
 * @throws errors of yauzl and of the file system
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
