import type { DownloadLimits } from '../../model-archiver/download.ts'
import { removeDownload } from '../../model-archiver/download-signature.ts'
import { locateModel } from '../../model-archiver/locate.ts'
import { prepareModel, type PreparedModel } from '../../model-archiver/prepare.ts'
import type { UnpackLimits } from '../../model-archiver/unpack-limits.ts'
import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'
import { archiveRules, checkConfiguredPin } from './archive-rules.ts'
import type { RegisterRequest } from './operations.ts'

/** A model whose files are ready, with its final name. */
export interface LocatedModel {
  readonly prepared: PreparedModel
  readonly name: string
  /** The SHA-256 that the archive had to have; undefined: any. */
  readonly pin?: string
  /** The file downloaded into the store; removed with the model. */
  readonly downloaded?: string
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
}

/** Limits for downloads, from the settings. */
export function downloadLimits(
  settings: Settings,
  { trusted = false, ...more }: { trusted?: boolean; signal?: AbortSignal; s3SseKms?: boolean },
): DownloadLimits {
  return {
    allowPrivate: trusted || settings.allowPrivateUrls === true,
    maxBytes: settings.maxDownloadSize,
    timeoutMs: settings.downloadTimeout * 1000,
    s3SigningHosts: settings.s3SigningHosts,
    ...more,
  }
}

/** Limits for archives, from the settings. */
export function unpackLimits(settings: Settings): UnpackLimits {
  return {
    maxFiles: settings.maxArchiveFiles,
    maxBytes: settings.maxUnpackedSize,
    maxRatio: settings.maxArchiveRatio,
    timeout: settings.unpackTimeout,
    minFreeBytes: settings.minFreeDisk,
  }
}

/**
 * Finds, downloads, checks and unpacks the model of a register request. Cleans up when it fails.
 * @throws ServeError UNTRUSTED_ARCHIVE, and errors of locateModel and prepareModel
 */
export async function locateAndPrepare(
  request: RegisterRequest,
  { settings, trusted, checked = false, signal }: LocateContext,
): Promise<LocatedModel> {
  const rules = checked ? {} : archiveRules(settings, request.sha256)
  if (rules.signatures?.required === true) refuseHandler(request)
  const { path, downloaded } = await locateModel(request.url, {
    modelStore: settings.modelStore,
    allowedUrls: settings.allowedUrls,
    trusted,
    download: downloadLimits(settings, { trusted, signal, s3SseKms: request.s3SseKms }),
    signatures: rules.signatures,
  })
  try {
    const prepared = await prepareModel(path, {
      tempDir: settings.tempDir,
      defaultName: request.modelName,
      handlerOverride: request.handler ?? undefined,
      defaultHandler: settings.defaultServiceHandler,
      runtimeOverride: request.runtime,
      limits: unpackLimits(settings),
      rules,
      signal,
    })
    return await withPin(
      { prepared, name: request.modelName ?? prepared.name, downloaded: downloaded ? path : undefined },
      request,
      settings,
    )
  } catch (error) {
    if (downloaded) await removeDownload(path)
    throw error
  }
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

/** Another handler could be code that nobody signed. @throws ServeError INVALID_ARGUMENT */
function refuseHandler({ handler }: RegisterRequest): void {
  if (handler === undefined) return
  throw new ServeError(
    'INVALID_ARGUMENT',
    'Parameter handler is not supported with require_signed_archives; the signed archive names its handler.',
  )
}
