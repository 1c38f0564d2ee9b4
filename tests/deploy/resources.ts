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

type Reference = Schema & { $ref?: string }
type Published = Reference & {
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[]
}

/** Schemas by `apiVersion/kind` from the OpenAPI document of Kubernetes (swagger.json). */
export function kubernetesSchemas(file: string): Map<string, Schema> {
  const { definitions } = JSON.parse(readFileSync(file, 'utf8')) as { definitions: Record<string, Published> }
  const byName = new Map(Object.entries(definitions))
  for (const name of ['util.intstr.IntOrString', 'api.resource.Quantity'])
    byName.set(`io.k8s.apimachinery.pkg.${name}`, { 'x-kubernetes-int-or-string': true })
  const schemas = new Map<string, Schema>()
  for (const schema of byName.values()) {
    link(schema, byName)
    for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? [])
      schemas.set([...(group === '' ? [] : [group]), version, kind].join('/'), schema)
  }
  return schemas
}

/** Puts the definitions in the place of references to them. */
function link(schema: Schema, byName: ReadonlyMap<string, Schema>): void {
  const target = (to: Reference): Schema => {
    if (to.$ref !== undefined) return byName.get(to.$ref.replace('#/definitions/', ''))!
    link(to, byName)
    return to
  }
  for (const [name, inner] of Object.entries(schema.properties ?? {}))
    schema.properties![name] = target(inner)
  if (schema.items !== undefined) schema.items = target(schema.items)
  if (typeof schema.additionalProperties === 'object')
    schema.additionalProperties = target(schema.additionalProperties)
}
