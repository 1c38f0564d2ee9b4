import { rm } from 'node:fs/promises'
import type { DownloadLimits } from '../../model-archiver/download.ts'
import { locateModel } from '../../model-archiver/locate.ts'
import { prepareModel, type PreparedModel } from '../../model-archiver/prepare.ts'
import type { UnpackLimits } from '../../model-archiver/unpack-limits.ts'
import type { Settings } from '../config/settings.ts'
import type { RegisterRequest } from './operations.ts'

/** A model whose files are ready, with its final name. */
export interface LocatedModel {
  readonly prepared: PreparedModel
  readonly name: string
  /** The file downloaded into the store; removed with the model. */
  readonly downloaded?: string
}

/** Who asks for a model, and for how long. */
export interface LocateContext {
  readonly settings: Settings
  /** The operator gave the location, so every local path and every address is allowed. */
  readonly trusted: boolean
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

/** Finds, downloads and unpacks the model of a register request. Cleans up when it fails. */
export async function locateAndPrepare(
  request: RegisterRequest,
  { settings, trusted, signal }: LocateContext,
): Promise<LocatedModel> {
  const { path, downloaded } = await locateModel(request.url, {
    modelStore: settings.modelStore,
    allowedUrls: settings.allowedUrls,
    trusted,
    download: downloadLimits(settings, { trusted, signal, s3SseKms: request.s3SseKms }),
  })
  try {
    const prepared = await prepareModel(path, {
      tempDir: settings.tempDir,
      defaultName: request.modelName,
      handlerOverride: request.handler ?? undefined,
      defaultHandler: settings.defaultServiceHandler,
      runtimeOverride: request.runtime,
      limits: unpackLimits(settings),
      signal,
    })
    return { prepared, name: request.modelName ?? prepared.name, downloaded: downloaded ? path : undefined }
  } catch (error) {
    if (downloaded) await rm(path, { force: true })
    throw error
  }
}
