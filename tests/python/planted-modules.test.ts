import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { installDependencies } from '../../frontend/workers/python/environment/dependencies.ts'
import { findPython } from '../../frontend/workers/python/environment/environment.ts'
import { readHandler } from '../../frontend/workers/python/environment/read-handler.ts'
import { type PreparedModel, prepareModel } from '../../model-archiver/prepare.ts'
import { settingsOf } from '../config/support.ts'
import { describePython } from '../support/python/test-python.ts'
import { writeWheel } from '../support/python/wheel.ts'
import { tempDir } from '../support/temp.ts'

/** Modules that the scripts of the server, venv and pip import. */
const NAMES = ['json', 'ast', 'importlib', 'types', 'logging', 'site', 'os', 'sysconfig', 'subprocess']

await describePython('modules that another user planted', ({ python }) => {
  const folder = tempDir()
  const ran = join(folder, 'ran')
  const evil = `open(${JSON.stringify(ran)}, "a").write(__name__)\n`
  const planted = NAMES.map((name) => join(tmpdir(), `${name}.py`))
  const before = process.cwd()

  beforeEach(() => {
    for (const file of planted) writeFileSync(file, evil)
    process.chdir(tmpdir())
  })
  afterEach(() => {
    process.chdir(before)
    for (const file of planted) rmSync(file)
  })

  async function model(files: Record<string, string>, handler = 'handler.py'): Promise<PreparedModel> {
    const root = join(tempDir(), 'm')
    mkdirSync(root)
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(root, name, '..'), { recursive: true })
      writeFileSync(join(root, name), text)
    }
    return prepareModel(root, { tempDir: tempDir(), handlerOverride: handler })
  }

  test('in the temporary folder and the current one run in no probe', async () => {
    // Another key than that of other tests: results are remembered.
    await findPython({ python, modelServerHome: tempDir() })
    expect(existsSync(ran)).toBe(false)
  })

  test('in the model run neither when a virtual environment is made nor in pip', async () => {
    const wheel = await writeWheel(folder, 'own', '1.0', 'x = 1\n')
    const planted = Object.fromEntries(NAMES.map((name) => [`${name}.py`, evil]))
    const prepared = await model({
      ...planted,
      'handler.py': '',
      'model-config.yaml': 'useVenv: true\n',
      'requirements.txt': `${join(folder, wheel)}\n`,
    })
    const { model: named } = prepared.manifest
    const { settings } = settingsOf({ file: `python=${python}\ninstall_py_dep_per_model=true` })
    await installDependencies(
      'm',
      {
        ...prepared,
        manifest: { ...prepared.manifest, model: { ...named, requirementsFile: 'requirements.txt' } },
      },
      { settings, signal: new AbortController().signal, log: () => undefined },
    )
    expect(existsSync(ran)).toBe(false)
    await prepared.dispose()
  })

  test('nor does a package of the archive when its handler is read', async () => {
    const prepared = await model(
      {
        'handler.py': '',
        'evil/__init__.py': `${evil}import nowhere\n`,
        'evil/sub.py': 'import json\ndef handle(d, c): pass\n',
      },
      'evil.sub:handle',
    )
    const found = await readHandler(
      await findPython({ python, modelServerHome: undefined }),
      prepared.modelDir,
      'evil.sub:handle',
    )
    expect(existsSync(ran)).toBe(false)
    expect(found).toMatchObject({
      file: join(prepared.modelDir, 'evil', 'sub.py'),
      entry: 'found',
      missing: { nowhere: 'evil/__init__.py' },
    })
    await prepared.dispose()
  })
})
