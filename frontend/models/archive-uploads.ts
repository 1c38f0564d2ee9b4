import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  MAX_SIGNATURE_BYTES,
  notSigned,
  SIGNATURE_ENDING,
  wrongHash,
} from '../../model-archiver/archive-identity.ts'
import { ARCHIVE_SUFFIX } from '../../model-archiver/model-name.ts'
import { NameTaken, writeNewFile } from '../../model-archiver/new-file.ts'
import { overLimit } from '../../model-archiver/unpack-budget.ts'
import { LIMIT_KEYS } from '../../model-archiver/unpack-limits.ts'
import { ServeError } from '../../common/errors.ts'
import { freeBytes, LOOK_EVERY_BYTES } from '../../common/free-bytes.ts'
import { isName, NAME_RULE } from '../../common/names.ts'
import { pathExists } from '../../common/path-exists.ts'
import { Places, type Refusal, type Taker } from '../../common/places.ts'
import type { Settings } from '../config/settings.ts'

/** A file that a client sends. */
export interface Upload {
  /** What it shall be called in the store: an archive, or an archive's name with .sig. */
  readonly name: string
  /** Bytes that the client has announced; undefined: it says none. */
  readonly announced: number | undefined
  /** SHA-256 that it must have, in lowercase hex; undefined: any. */
  readonly sha256: string | undefined
  readonly sender: Taker
  /** Called once the upload may begin; nothing of the content is read before. */
  readonly open: () => AsyncIterable<Uint8Array>
}

/** A file that has arrived. */
export interface Uploaded {
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** In lowercase hex. */
  readonly sha256: string
}

export type UploadSettings = Pick<
  Settings,
  'modelStore' | 'maxDownloadSize' | 'minFreeDisk' | 'requireSignedArchives'
>

/** Uploads at the same time. */
const MAX_UPLOADS = 4

/** Takes archives, and signatures for them, into the model store. None of them is loaded by that. */
export class ArchiveUploads {
  readonly #settings: UploadSettings
  readonly #places = new Places(MAX_UPLOADS)
  /** Stems of what is on its way. */
  readonly #running = new Set<string>()

  constructor(settings: UploadSettings) {
    this.#settings = settings
  }

  /**
   * Writes the file, whole or not at all. It never replaces a model of the store, nor stands beside one as
   * the same model in another format. A signature comes before its archive, and a later one replaces it until
   * then.
   * @throws ServeError INVALID_ARGUMENT, CONFLICT, PAYLOAD_TOO_LARGE, RATE_LIMITED, UNTRUSTED_ARCHIVE,
   *   INVALID_ARCHIVE when the disk is too full, MODEL_NOT_FOUND without a store, INTERNAL, and those of the
   *   content
   */
  async receive(upload: Upload): Promise<Uploaded> {
    const { modelStore } = this.#settings
    if (modelStore === undefined)
      throw new ServeError('MODEL_NOT_FOUND', 'Model store has not been configured.')
    const archive = archiveOf(upload.name)
    const stem = archive.replace(ARCHIVE_SUFFIX, '')
    if (this.#running.has(stem)) throw taken(upload.name)
    const leave = this.#places.take(upload.sender, (why) => this.#noPlace(why, upload.sender))
    this.#running.add(stem)
    try {
      await checkStem(modelStore, stem)
      return await this.#write(upload, modelStore, archive)
    } catch (error) {
      throw error instanceof NameTaken ? taken(upload.name) : notSaved(error)
    } finally {
      this.#running.delete(stem)
      leave()
    }
  }

  #noPlace(why: Refusal, sender: Taker): ServeError {
    const { max, maxNarrow } = this.#places
    const who = {
      all: `${max} archives are uploaded now`,
      narrow: `${maxNarrow} archives are uploaded now by keys of some models`,
      key: `This key has ${this.#places.maxOf(sender)} of the ${max} uploads that may run, as many as one key may`,
    }
    return new ServeError('RATE_LIMITED', `${who[why]}. Try again later.`)
  }

  async #write(upload: Upload, store: string, archive: string): Promise<Uploaded> {
    const { maxDownloadSize, requireSignedArchives } = this.#settings
    const { name, announced = 0 } = upload
    const isSignature = name !== archive
    const maxBytes = isSignature ? MAX_SIGNATURE_BYTES : maxDownloadSize
    if (announced > maxBytes) throw tooLarge(maxBytes)
    if (!isSignature && requireSignedArchives && !(await pathExists(join(store, name + SIGNATURE_ENDING))))
      throw notSigned(name)
    await this.#checkRoom(store, announced)
    const arriving = new Arriving(upload, maxBytes, () => this.#checkRoom(store, LOOK_EVERY_BYTES))
    await writeNewFile(join(store, name), { content: () => arriving.bytes(), replaces: isSignature })
    return { name, size: arriving.size, sha256: arriving.sha256 }
  }

  async #checkRoom(store: string, bytes: number): Promise<void> {
    const { minFreeDisk } = this.#settings
    if ((await freeBytes(store)) - bytes >= minFreeDisk) return
    const what = `The disk of the model store must keep ${minFreeDisk} bytes free; free some space`
    throw new ServeError('INVALID_ARCHIVE', overLimit(what, LIMIT_KEYS.minFreeBytes, 'lower'))
  }
}

/** Counts, hashes and checks what arrives. */
class Arriving {
  size = 0
  sha256 = ''
  readonly #upload: Upload
  readonly #maxBytes: number
  readonly #checkRoom: () => Promise<void>

  constructor(upload: Upload, maxBytes: number, checkRoom: () => Promise<void>) {
    this.#upload = upload
    this.#maxBytes = maxBytes
    this.#checkRoom = checkRoom
  }

  async *bytes(): AsyncGenerator<Uint8Array, void> {
    const hash = createHash('sha256')
    let looked = 0
    for await (const chunk of this.#upload.open()) {
      this.size += chunk.length
      if (this.size > this.#maxBytes) throw tooLarge(this.#maxBytes)
      if (this.size - looked >= LOOK_EVERY_BYTES) {
        looked = this.size
        await this.#checkRoom()
      }
      hash.update(chunk)
      yield chunk
    }
    if (this.size === 0) throw new ServeError('INVALID_ARGUMENT', 'The body must be the archive.')
    this.sha256 = hash.digest('hex')
    const { sha256 } = this.#upload
    if (sha256 !== undefined && sha256 !== this.sha256) throw wrongHash(sha256, this.sha256)
  }
}

/** The archive that a file is, or is the signature of. @throws ServeError INVALID_ARGUMENT */
export function archiveOf(name: string): string {
  const archive = name.endsWith(SIGNATURE_ENDING) ? name.slice(0, -SIGNATURE_ENDING.length) : name
  const stem = archive.replace(ARCHIVE_SUFFIX, '')
  if (stem !== archive && isName(archive) && isName(stem)) return archive
  throw new ServeError(
    'INVALID_ARGUMENT',
    `The name of an archive must end in .mar, .model, .tar.gz or .tgz (its signature: .sig after that), and must ${NAME_RULE}.`,
  )
}

/**
 * Of files that differ only in the ending, one is the model when the store is read, and another would take
 * its place. @throws ServeError CONFLICT
 */
async function checkStem(store: string, stem: string): Promise<void> {
  const same = (await readdir(store)).find((name) => name.replace(ARCHIVE_SUFFIX, '') === stem)
  if (same !== undefined) throw taken(same)
}

function taken(name: string): ServeError {
  return new ServeError(
    'CONFLICT',
    `The model store has ${name} already, and an upload replaces nothing. Use another name.`,
  )
}

function tooLarge(maxBytes: number): ServeError {
  const why =
    maxBytes === MAX_SIGNATURE_BYTES
      ? `A signature must have at most ${MAX_SIGNATURE_BYTES} bytes`
      : 'The archive is larger than max_download_size'
  return new ServeError('PAYLOAD_TOO_LARGE', why)
}

/** Its code alone: messages of the file system have paths. */
function notSaved(error: unknown): ServeError {
  if (error instanceof ServeError) return error
  const { code, message } = error as NodeJS.ErrnoException
  return new ServeError('INTERNAL', `The archive could not be saved: ${code ?? 'unknown error'}`, {
    detail: message,
    cause: error,
  })
}
