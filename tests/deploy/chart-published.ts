import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { queriesOf, releaseProblems } from './chart-objects.ts'
import { ChartProgram, type Rendered, VALUES, valueSet } from './chart-program.ts'
import { REFUSED } from './chart-refused.ts'
import { kubernetesSchemas, schemasOf } from './resources.ts'
import { problems, type Schema } from './schema.ts'

const KUBERNETES = 'k8s.io/kubernetes@v1.37.1'
/** CustomResourceDefinitions: the module, and the folder in it. */
const DEFINITIONS = [
  ['github.com/kedacore/keda/v2@v2.21.0', 'config/crd/bases'],
  ['github.com/prometheus-operator/prometheus-operator@v0.85.0', 'example/prometheus-operator-crd'],
] as const

type Report = (name: string, problems: readonly string[]) => void
type Download = (module: string) => Promise<string>

/**
 * Lints and renders the chart with Helm's own code and validates what comes out: strictly against Kubernetes'
 * Go types, against the published schemas, as a whole, and its queries with Prometheus' own parser.
 * @param folder for temporary files
 */
export async function checkChart(folder: string, download: Download, report: Report): Promise<void> {
  const program = await ChartProgram.build(folder)
  const schemas = await publishedSchemas(download)
  for (const each of await program.render(readdirSync(VALUES).map(valueSet))) {
    await reportRelease(each, schemas, folder, report)
    const contents = each.objects.map(({ content }) => content)
    const queries = queriesOf(contents)
    const parsed = await program.parse(queries)
    if (queries.length > 0)
      report(`${each.name}: ${queries.length} queries`, [
        ...parsed.flatMap(({ error }, i) => (error === '' ? [] : [`${queries[i]}: ${error}`])),
        ...(parsed.length === queries.length ? [] : ['not all were parsed']),
      ])
  }
  const refused = REFUSED.map(([name, values]) => ({ name, values }))
  const answers = await program.render(refused)
  for (const [i, [name, , words]] of REFUSED.entries()) {
    const error = answers[i]?.error ?? ''
    report(
      `refused: ${name}`,
      error.includes(words) ? [] : [`must say ${words}, found ${error || 'nothing'}`],
    )
  }
}

async function reportRelease(
  { name, error, lint, notes, objects }: Rendered,
  schemas: ReadonlyMap<string, Schema>,
  folder: string,
  report: Report,
): Promise<void> {
  const isRendered = error === '' && notes.includes('serves in the namespace models')
  report(`${name}: lint and render`, [...lint, ...(isRendered ? [] : [error || 'The notes are missing'])])
  for (const { template, content, known, problem } of objects) {
    const schema = schemas.get(`${content.apiVersion}/${content.kind}`)
    const found = schema === undefined ? ['has no published schema'] : problems(content, schema)
    // Kinds that Kubernetes' own types do not have are those of the other modules.
    const isStrange = !known && !/^(keda\.sh|monitoring\.coreos\.com)\//.test(content.apiVersion)
    report(`${name}: ${template.split('/').at(-1)} ${content.kind} ${content.metadata.name}`, [
      ...found,
      ...(problem === '' ? [] : [problem]),
      ...(isStrange ? ['is unknown to Kubernetes'] : []),
    ])
  }
  const contents = objects.map(({ content }) => content)
  report(`${name}: as a whole`, await releaseProblems(contents, folder))
}

async function publishedSchemas(download: Download): Promise<Map<string, Schema>> {
  const swagger = join(await download(KUBERNETES), 'api', 'openapi-spec', 'swagger.json')
  const schemas = kubernetesSchemas(swagger)
  for (const [module, folder] of DEFINITIONS)
    for (const [kind, schema] of schemasOf(join(await download(module), folder))) schemas.set(kind, schema)
  return schemas
}
