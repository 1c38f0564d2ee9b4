import type { ModelOperations } from '../../models/operations.ts'
import { serverMetadata } from '../../package-info.ts'
import { openInferenceSettings, type TensorMetadata } from './settings.ts'

/** The extensions that the server supports besides those that TorchServe lists. */
const EXTENSIONS = ['binary_tensor_data', 'model_repository', 'parameters', 'generate', 'infer_stream']

export function serverFacts(): { name: string; version: string; extensions: string[] } {
  const { extensions, ...server } = serverMetadata
  return { ...server, extensions: [...extensions, ...EXTENSIONS] }
}

export interface ModelMetadata {
  name: string
  versions: string[]
  platform: string
  inputs: TensorMetadata[]
  outputs: TensorMetadata[]
}

/** @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND */
export async function modelMetadata(
  models: ModelOperations,
  name: string,
  version?: string,
): Promise<ModelMetadata> {
  const { versions, platform, inputs, outputs } = openInferenceSettings(models.status(name, version))
  const registered = versions.length > 0 ? versions : await registeredVersions(models, name)
  return { name, versions: registered, platform, inputs, outputs }
}

async function registeredVersions(models: ModelOperations, name: string): Promise<string[]> {
  const all = await models.describe(name, 'all')
  return all.map(({ modelVersion }) => modelVersion)
}
