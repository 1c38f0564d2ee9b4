import yauzl from 'yauzl'

/**
 * The text of one file in a zip; undefined when it is missing or larger than `maxBytes`.
 * @throws errors of yauzl and of the file system
 */
export async function readZipEntry(
  file: string,
  name: string,
  maxBytes: number,
): Promise<string | undefined> {
  const zip = await yauzl.openPromise(file, { autoClose: false })
  try {
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
