import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../model-archiver/package-root.ts'

/** Folder with the .proto files. */
export const protoDir = join(packageRoot(), 'proto')

/** Folder of the documentation, which the installed package has too. */
export const docsDir = join(packageRoot(), 'docs')

/** Folder of the console's page, as the build makes it. */
export const consoleDir = join(packageRoot(), 'dist', 'frontend', 'console')

/** Folder of the projects that `init` writes. */
export const templatesDir = join(packageRoot(), 'templates')

/** Default of metrics_config. */
export const defaultMetricsConfig = join(packageRoot(), 'configs', 'metrics.yaml')

const description: unknown = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'))

/** Version of the installed package. */
export const version = (description as { version: string }).version

/** Server metadata of the Open Inference Protocol, with TorchServe's names. */
export const serverMetadata = { name: 'Torchserve', version, extensions: ['kserve', 'kubeflow'] }
