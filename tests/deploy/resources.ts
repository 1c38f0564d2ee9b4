import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { Schema } from './schema.ts'

const DEPLOY = join(import.meta.dirname, '..', '..', 'deploy')

interface Resource {
  apiVersion: string
  kind: string
  metadata: { name: string }
  spec: Record<string, unknown>
}

interface Definition {
  spec: {
    group: string
    names: { kind: string }
    versions: { name: string; schema: { openAPIV3Schema: Schema } }[]
  }
}

/** Every document of the YAML files in `folder`. */
function yamlDocuments<T>(folder: string): T[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) =>
      parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((each) => each.toJS() as T),
    )
}

export function manifests(part: 'kserve' | 'seldon'): Resource[] {
  return yamlDocuments<Resource>(join(DEPLOY, part))
}

/** Schemas by `apiVersion/kind` from CustomResourceDefinitions. */
export function schemasOf(folder: string): Map<string, Schema> {
  const schemas = new Map<string, Schema>()
  for (const { spec } of yamlDocuments<Partial<Definition>>(folder)) {
    if (spec?.names === undefined) continue
    for (const { name, schema } of spec.versions)
      schemas.set(`${spec.group}/${name}/${spec.names.kind}`, schema.openAPIV3Schema)
  }
  return schemas
}
