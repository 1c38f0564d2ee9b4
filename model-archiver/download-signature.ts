import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { MAX_SIGNATURE_BYTES, notSigned, SIGNATURE_ENDING, type SignatureRules } from './archive-identity.ts'
import { archiveNameOf, downloadArchive, downloadFile, RefusedDownload } from './download.ts'
import type { DownloadOptions } from './download.ts'

/** Answers for a file that is not there. Object stores answer 403 to who may not list their content. */
const ABSENT: ReadonlySet<number> = new Set([403, 404, 410])

/**
 * Downloads an archive and, if signatures are checked, first the signature beside it: the same URL with .sig
 * after its path.
 * @returns the archive's absolute path
 * @throws ServeError as downloadArchive does; UNTRUSTED_ARCHIVE when a signature is required and missing
 */
export async function downloadSigned(
  url: string,
  store: string,
  options: DownloadOptions,
  signatures: SignatureRules | undefined,
): Promise<string> {
  if (signatures === undefined) return downloadArchive(url, store, options)
  const name = archiveNameOf(url)
  if (!options.isAllowed(new URL(url).href)) return downloadArchive(url, store, options)
  const signature = await downloadSignature(url, join(store, name), options)
  if (signature === undefined && signatures.required) throw notSigned(name)
  try {
    return await downloadArchive(url, store, options)
  } catch (error) {
    if (signature !== undefined) await rm(signature, { force: true })
    throw error
  }
}

/** Removes a downloaded archive, and the signature that came with it. */
export async function removeDownload(archive: string): Promise<void> {
  await rm(archive, { force: true })
  await rm(`${archive}${SIGNATURE_ENDING}`, { force: true })
}

/** @returns its path; undefined: there is none */
async function downloadSignature(
  url: string,
  archive: string,
  options: DownloadOptions,
): Promise<string | undefined> {
  const at = new URL(url)
  at.pathname += SIGNATURE_ENDING
  const { isAllowed } = options
  try {
    return await downloadFile(at.href, `${archive}${SIGNATURE_ENDING}`, {
      ...options,
      maxBytes: MAX_SIGNATURE_BYTES,
      // A pattern may end in .mar: where an archive is allowed, so is its signature.
      isAllowed: (target) => isAllowed(target) || isAllowed(archiveOf(target)),
    })
  } catch (error) {
    const { cause } = ServeError.from(error)
    if (cause instanceof RefusedDownload && ABSENT.has(cause.status)) return undefined
    throw error
  }
}

/** The URL without .sig after its path. */
function archiveOf(signature: string): string {
  const url = new URL(signature)
  if (url.pathname.endsWith(SIGNATURE_ENDING)) url.pathname = url.pathname.slice(0, -SIGNATURE_ENDING.length)
  return url.href
}
