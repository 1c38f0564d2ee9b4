/** Makes the modules of dist that run: one bundle of all entries, in pieces that they share. */
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type BuildOptions, type Metafile } from 'esbuild'
import { ownValue } from '../common/json.ts'
import { BUILTIN_MODULES } from '../model-archiver/builtin-handlers.ts'

/**
 * What is started, imported or run as a thread by its path below dist: commands, exports of package.json, the
 * worker, threads, and built-in handlers.
 */
const ENTRIES = [
  'frontend/cli',
  'model-archiver/cli',
  'model-archiver/workflow-cli',
  'model-archiver/index',
  'model-archiver/unpack-worker',
  'backend-worker/main',
  'backend-worker/index',
  'backend-worker/testing',
  ...BUILTIN_MODULES.map((module) => module.replace(/\.js$/, '')),
]

/** Native code, and what a model brings itself. Handlers import `torchserve-ts` from the package. */
const EXTERNAL = ['esbuild', 'msgpackr-extract', 'node-llama-cpp', '@huggingface/jinja', 'torchserve-ts']

/** The console's page: what a browser loads, and where it is served from. */
const CONSOLE = 'dist/frontend/console'

const CHUNKS = 'dist/chunks'
const LICENCES = 'dist/third-party-licences.txt'

/**
 * Bundles with the packages that the server needs, because reading a thousand files takes most of a start.
 * Entries share their pieces, so a handler and its worker have the same classes.
 * @param root of a checkout; writes into its dist
 * @returns the files of the checkout that the bundle has, relative to it
 */
export async function bundle(root: string): Promise<string[]> {
  rmSync(join(root, CHUNKS), { recursive: true, force: true })
  const [{ metafile }, page] = await Promise.all([build(bundleOptions(root)), build(consoleOptions(root))])
  refuseBareCommonJs(metafile)
  copyFileSync(join(root, 'console', 'index.html'), join(root, CONSOLE, 'index.html'))
  const packages = [...new Set([...packageFolders(metafile), ...packageFolders(page.metafile)])].sort()
  writeFileSync(join(root, LICENCES), licences(root, packages))
  const inputs = [...Object.keys(metafile.inputs), ...Object.keys(page.metafile.inputs)]
  return inputs.filter((path) => !path.startsWith('node_modules/'))
}

/** NAME@VERSION of each package whose code is in the bundle. Writes nothing. */
export async function bundledPackages(root: string): Promise<string[]> {
  const metafiles = await Promise.all(
    [bundleOptions(root), consoleOptions(root)].map(async (options) => {
      const { metafile } = await build({ ...options, write: false })
      return metafile
    }),
  )
  return [...new Set(metafiles.flatMap(packageFolders))].sort().map((folder) => {
    const { name, version } = description(join(root, folder))
    return `${name}@${version}`
  })
}

/** esbuild's options for the bundle of a checkout. */
export function bundleOptions(root: string): BuildOptions & { metafile: true } {
  return {
    absWorkingDir: root,
    entryPoints: ENTRIES.map((entry) => `${entry}.ts`),
    outbase: '.',
    outdir: 'dist',
    bundle: true,
    splitting: true,
    chunkNames: `${CHUNKS.slice('dist/'.length)}/[name]-[hash]`,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: EXTERNAL,
    // Lines and names stay, for stack traces: minified, it starts no sooner.
    sourcemap: true,
    sourcesContent: false,
    legalComments: 'none',
    // Packages in CommonJS require modules of Node.js.
    banner: {
      js: "import{createRequire as nodeRequire}from'node:module';const require=nodeRequire(import.meta.url);",
    },
    metafile: true,
    logLevel: 'warning',
  }
}

/** esbuild's options for the console's page. Browsers need neither names nor lines of it. */
function consoleOptions(root: string): BuildOptions & { metafile: true } {
  return {
    absWorkingDir: root,
    entryPoints: [
      { in: 'console/app.tsx', out: 'app' },
      { in: 'console/app.css', out: 'app' },
    ],
    outdir: CONSOLE,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  }
}

/** Asks the operating system for its id, which the server does not want to know. */
const NEVER_RUN = /@opentelemetry\/resources\/.*\/machine-id\//

/** Such an import would give the default export only. A module of ours can import it by name. */
function refuseBareCommonJs({ inputs }: Metafile): void {
  for (const [path, { imports }] of Object.entries(inputs)) {
    if (NEVER_RUN.test(path)) continue
    const bare = imports.find(
      (each) =>
        each.kind === 'dynamic-import' &&
        each.external !== true &&
        ownValue(inputs, each.path)?.format === 'cjs',
    )
    if (bare !== undefined)
      throw new Error(`${path} must import ${bare.path} with an import statement: it is CommonJS`)
  }
}

/** The folders of the packages whose code is in the bundle, relative to the checkout. */
function packageFolders({ inputs }: Metafile): string[] {
  const folders = Object.keys(inputs).flatMap(
    (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [],
  )
  return [...new Set(folders)].sort()
}

/** The licences of all packages in the bundle, which ask to be where their code is. */
function licences(root: string, packages: readonly string[]): string {
  return packages.map((folder) => `${'-'.repeat(80)}\n${licence(join(root, folder))}`).join('\n')
}

function licence(folder: string): string {
  const { name, version, license } = description(folder)
  const files = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^(licen[cs]e|notice|copying)/i.test(entry.name))
    .map((entry) => entry.name)
  return [
    `${name} ${version}, ${license}\n`,
    ...files.map((file) => readFileSync(join(folder, file), 'utf8')),
  ].join('\n')
}

function description(folder: string): Record<'name' | 'version' | 'license', string> {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as ReturnType<typeof description>
}
