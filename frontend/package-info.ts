import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../model-archiver/package-root.ts'

/** Folder with the .proto files. */
export const protoDir = join(packageRoot(), 'proto')

/** The metrics.yaml that counts when metrics_config names none. */
export const defaultMetricsConfig = join(packageRoot(), 'configs', 'metrics.yaml')

const description: unknown = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'))

/** Version of the installed package. */
export const version = (description as { version: string }).version

/** What the Open Inference Protocol says of the server; the names are TorchServe's. */
export const serverMetadata = { name: 'Torchserve', version, extensions: ['kserve', 'kubeflow'] }
