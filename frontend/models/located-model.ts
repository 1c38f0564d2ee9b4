import { rm } from 'node:fs/promises'
import { isAbsolute, sep } from 'node:path'
import type { DownloadLimits } from '../../model-archiver/download.ts'
import { locateModel } from '../../model-archiver/locate.ts'
import { type PreparedModel, prepareModel } from '../../model-archiver/prepare.ts'
import type { UnpackLimits } from '../../model-archiver/unpack-budget.ts'
import { isObject, ownValue } from '../../common/json.ts'
import type { Settings } from '../config/settings.ts'
import type { RegisterRequest } from './operations.ts'
import { SourceFiles } from './source-files.ts'
import { untrusted, wrongHash } from '../../model-archiver/hashed-file.ts'
import { ServeError } from '../../common/errors.ts'
import { redactUrl } from '../../common/texts.ts'
import type { LoadingModel } from '../../common/server-events.ts'

/** A model whose files are ready, with its final name. */
export interface LocatedModel {
  readonly prepared: PreparedModel
  readonly name: string
  /** The SHA-256 that the archive had to have; undefined: any. */
  readonly pin?: string
  /** The file downloaded into the store; removed with the model. */
  readonly downloaded?: string
  /** The files on this machine that it comes from, for a later load; absent: a load takes it anew. */
  readonly source?: SourceFiles
}

/** Who asks for a model, and for how long. */
export interface LocateContext {
  readonly settings: Settings
  /** The operator gave the location, so every local path and every address is allowed. */
  readonly trusted: boolean
  /** The files are part of an archive that was checked: a workflow's functions. Default false. */
  readonly checked?: boolean
  /** Cancels download and unpacking. */
  readonly signal: AbortSignal
  /** Hears how far it is. Default: nobody does. */
  readonly load?: Load
}

/** Limits for downloads, from the settings. */
export function downloadLimits(
  settings: Settings,
  { trusted = false, ...more }: { trusted?: boolean; signal?: AbortSignal; s3SseKms?: boolean },
): DownloadLimits {
  return {
    allowPrivate: trusted || settings.allowPrivateUrls === true,
    maxBytes: settings.maxUnpackedSize,
    timeoutMs: settings.downloadTimeout * 1000,
    s3SigningHosts: settings.s3SigningHosts,
    ...more,
  }
}

/** Limits for archives, from the settings. */
export function unpackLimits(settings: Settings): Partial<UnpackLimits> {
  return {
    maxFiles: settings.maxArchiveFiles,
    maxBytes: settings.maxUnpackedSize,
    minFreeBytes: settings.minFreeDisk,
  }
}

/**
 * Finds, downloads, checks and unpacks the model of a register request. Cleans up when it fails.
 * @throws ServeError UNTRUSTED_ARCHIVE, and errors of locateModel and prepareModel
 */
export async function locateAndPrepare(
  request: RegisterRequest,
  { settings, trusted, checked = false, signal, load }: LocateContext,
): Promise<LocatedModel> {
  const { path, downloaded } = await locateModel(request.url, {
    modelStore: settings.modelStore,
    allowedUrls: settings.allowedUrls,
    trusted,
    download: {
      ...downloadLimits(settings, { trusted, signal, s3SseKms: request.s3SseKms }),
      onProgress: (bytes, total) => {
        if (load !== undefined) [load.receivedBytes, load.totalBytes] = [bytes, total]
      },
    },
  })
  try {
    if (load !== undefined) load.phase = 'unpacking'
    const source = downloaded ? undefined : await sourceOf(path, settings)
    const prepared = await prepareModel(path, {
      tempDir: settings.tempDir,
      defaultName: request.modelName,
      handlerOverride: request.handler ?? undefined,
      defaultHandler: settings.defaultServiceHandler,
      runtimeOverride: request.runtime,
      config: request.config,
      limits: unpackLimits(settings),
      sha256: checked ? undefined : request.sha256,
      signal,
    })
    const weights = weightsOf(prepared)
    if (weights !== undefined && !isBelow(weights, path, prepared.workDir)) await source?.add(weights)
    const name = request.modelName ?? prepared.name
    const located = { prepared, name, downloaded: downloaded ? path : undefined, source }
    return await withPin(located, request, settings)
  } catch (error) {
    if (downloaded) await rm(path, { force: true })
    throw error
  }
}

/** Taken before they are read: a change while they are counts as one afterwards. */
async function sourceOf(
  path: string,
  { enableModelApi, maxArchiveFiles }: Settings,
): Promise<SourceFiles | undefined> {
  if (!enableModelApi) return undefined
  const source = new SourceFiles(maxArchiveFiles)
  await source.add(path)
  return source
}

/** `parameters.uri` of a model-settings.json, which may be outside of its folder. */
function weightsOf({ modelConfig }: PreparedModel): string | undefined {
  const { modelSettings } = modelConfig
  const parameters = isObject(modelSettings) ? modelSettings['parameters'] : undefined
  const uri = isObject(parameters) ? parameters['uri'] : undefined
  return typeof uri === 'string' && isAbsolute(uri) ? uri : undefined
}

function isBelow(path: string, ...folders: string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(folder + sep))
}

/** Compares it with the key `models`, which needs the name and version that the archive has. */
async function withPin(
  located: LocatedModel,
  { sha256 }: RegisterRequest,
  settings: Settings,
): Promise<LocatedModel> {
  try {
    const configured = checkConfiguredPin(settings, located)
    return { ...located, pin: sha256 ?? configured }
  } catch (error) {
    await located.prepared.dispose()
    throw error
  }
}

/** What archives must be, from the settings and a register call (docs/trusted-archives.md). */

const SHA256 = /^[0-9a-f]{64}$/

/** The `sha256` of a register call in lowercase. @throws ServeError INVALID_ARGUMENT */
export function pinOf(text: string | undefined): string | undefined {
  const pin = text?.toLowerCase()
  if (pin === undefined || SHA256.test(pin)) return pin
  throw new ServeError('INVALID_ARGUMENT', 'Parameter sha256 must be 64 hexadecimal digits.')
}

/**
 * The pin of a version in the key `models`. A name with a pin loads only versions that have one: the version
 * is in the archive, so whoever changes the archive could choose another.
 * @returns undefined: the name has no pins
 * @throws ServeError UNTRUSTED_ARCHIVE when the version has no pin, or another archive
 */
export function checkConfiguredPin(
  { models }: Pick<Settings, 'models'>,
  { name, prepared: { version, archive } }: LocatedModel,
): string | undefined {
  const versions = ownValue(models, name) ?? {}
  const isPinned = Object.values(versions).some(({ sha256 }) => sha256 !== undefined)
  if (!isPinned) return undefined
  const pin = ownValue(versions, version)?.sha256
  if (pin === undefined)
    throw untrusted(
      `Model ${name} has a sha256 in the key models, but not for version ${version}. Add one if you trust it.`,
    )
  if (archive === undefined)
    throw untrusted(
      `Model ${name} must be an archive, not a folder, because it has a sha256 in the key models.`,
    )
  if (archive.sha256 !== pin) throw wrongHash(pin, archive.sha256)
  return pin
}

/** One archive on its way to a model. */
export class Load {
  phase: LoadingModel['phase']
  /** Bytes of a download that have arrived, of how many if the sender said so. */
  receivedBytes: number | undefined
  totalBytes: number | undefined
  readonly #modelName: string | undefined
  readonly #url: string
  readonly #since = performance.now()

  constructor({ url, modelName }: Pick<RegisterRequest, 'url' | 'modelName'>) {
    this.#modelName = modelName
    this.#url = redactUrl(url)
    this.phase = /^https?:/i.test(url) ? 'downloading' : 'unpacking'
  }

  describe(): LoadingModel {
    const { phase, receivedBytes, totalBytes } = this
    const ageMs = Math.round(performance.now() - this.#since)
    return { modelName: this.#modelName, url: this.#url, phase, receivedBytes, totalBytes, ageMs }
  }
}
