/**
 * Brings the archives of a list into a folder: `node download.mjs LIST.json FOLDER`. The list has `file`, `url` and `sha256` of
 * each. A file that is there with its hash stays. Any other one is replaced once the download has its hash, and not before.
 * The variable DOWNLOAD_AUTHORIZATION is sent as the header of that name. Ends with status 1 at the first failure.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { readFile, rename, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** A download that brings no byte for so long has failed. */
const STALL_MS = 60_000

const [list, folder] = process.argv.slice(2)
const authorization = process.env.DOWNLOAD_AUTHORIZATION
const headers = authorization ? { authorization } : {}

for (const { file, url, sha256 } of JSON.parse(await readFile(list, 'utf8'))) {
  const path = join(folder, file)
  try {
    if ((await hashOf(path)) === sha256) console.log(`${file} is there already`)
    else {
      const bytes = await download(url, path, sha256)
      console.log(`Downloaded ${file}, ${bytes} bytes; its SHA-256 is right`)
    }
  } catch (error) {
    console.error(`${file} could not be downloaded: ${reasonOf(error)}`)
    process.exit(1)
  }
}

/** Undefined if there is no such file. */
async function hashOf(path) {
  const hash = createHash('sha256')
  try {
    await pipeline(createReadStream(path), hash)
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
  return hash.digest('hex')
}

async function download(url, path, sha256) {
  // The name is the pod's own: pods may share the folder, and what an ended one left behind is overwritten.
  const part = `${path}.${hostname()}.part`
  const stall = new AbortController()
  const timer = setTimeout(() => stall.abort(new Error('no byte came for a minute')), STALL_MS)
  try {
    const response = await fetch(url, { headers, signal: stall.signal })
    if (!response.ok) throw new Error(`the server answered ${response.status}`)
    const hash = createHash('sha256')
    let bytes = 0
    const count = new Transform({
      transform(chunk, _encoding, done) {
        timer.refresh()
        hash.update(chunk)
        bytes += chunk.length
        done(null, chunk)
      },
    })
    await pipeline(Readable.fromWeb(response.body), count, createWriteStream(part))
    const found = hash.digest('hex')
    if (found !== sha256) throw new Error(`its SHA-256 must be ${sha256}, found ${found}`)
    await rename(part, path)
    return bytes
  } finally {
    clearTimeout(timer)
    await rm(part, { force: true })
  }
}

/** Without the URL, which may have a signature. */
function reasonOf(error) {
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return `${error.message}${cause}`
}
