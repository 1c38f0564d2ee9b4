import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { installDependencies } from '../../frontend/workers/python/environment/dependencies.ts'
import { findPython, packagesFolder } from '../../frontend/workers/python/environment/environment.ts'
import { prepareModel, type PreparedModel } from '../../model-archiver/prepare.ts'
import { settingsOf } from '../config/support.ts'
import { packPython } from '../support/python/archive.ts'
import { describePython } from '../support/python/test-python.ts'
import { writeWheel } from '../support/python/wheel.ts'
import { isRunning } from '../support/processes.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const HANDLER = 'def handle(data, context):\n    return None\n'

await describePython('the packages of a Python model', (environment) => {
  const { python } = environment
  const settings = settingsOf({ file: `python=${python}\ninstall_py_dep_per_model=true` }).settings
  const logged: string[] = []

  function install(
    model: PreparedModel,
    signal = new AbortController().signal,
    own = settings,
  ): Promise<void> {
    const log = (line: string): void => void logged.push(line)
    return installDependencies('m', model, { settings: own, signal, log })
  }

  async function model(requirements: string, config?: string): Promise<PreparedModel> {
    const archive = await packPython(environment, tempDir(), {
      name: 'm',
      handler: HANDLER,
      requirements,
      config,
    })
    return prepareModel(archive, { tempDir: tempDir() })
  }

  /** What a worker of the model gets when it imports a module. */
  async function imported(prepared: PreparedModel, module: string): Promise<string> {
    const found = await findPython(settings, prepared)
    const { stdout, stderr } = await execa(
      found.python,
      ['-c', `import ${module}; print(${module}.__file__); import ts, torch, yaml`],
      { env: { PYTHONPATH: [prepared.modelDir, found.packages].join(':') }, reject: false },
    )
    return stdout + stderr
  }

  async function wheel(name: string): Promise<string> {
    const folder = tempDir()
    return join(folder, await writeWheel(folder, name, '1.0', 'x = 1\n'))
  }

  test('requirements go beside the model, where only its workers find them', async () => {
    const prepared = await model(`${await wheel('onlymine')}\n`)
    await install(prepared)
    expect(await imported(prepared, 'onlymine')).toBe(join(packagesFolder(prepared), 'onlymine.py'))
    expect((await findPython(settings)).packages).toBeUndefined()
    expect(logged).toContain('Installed custom pip packages for model m')
    expect(logged.join('\n')).toContain('Processing ')
    await prepared.dispose()
    expect(existsSync(prepared.workDir)).toBe(false)
  })

  test('a folder of the user stays as it is', async () => {
    const store = tempDir()
    const folder = await packPython(environment, store, {
      ...{
        name: 'plain',
        handler: HANDLER,
        requirements: `${await wheel('foldermine')}\n`,
        format: 'no-archive',
      },
    })
    const before = readdirSync(folder, { recursive: true })
    const prepared = await prepareModel(folder, { tempDir: tempDir() })
    await install(prepared)
    expect(await imported(prepared, 'foldermine')).toContain('foldermine.py')
    await prepared.dispose()
    expect(readdirSync(folder, { recursive: true })).toEqual(before)
  })

  test('nothing is installed without the key', async () => {
    const prepared = await model('/no/such.whl\n')
    await install(prepared, undefined, settingsOf({ file: `python=${python}` }).settings)
    expect(await imported(prepared, 'nothing')).toContain('ModuleNotFoundError')
    await prepared.dispose()
  })

  test('a failed installation is TorchServe’s error, with pip’s reason as detail', async () => {
    const prepared = await model('/no/such.whl\n')
    await expect(install(prepared)).rejects.toMatchObject({
      code: 'DEPENDENCIES_FAILED',
      message: 'Custom pip package installation failed for model m',
      detail: expect.stringContaining('such.whl'),
    })
    await prepared.dispose()
  })

  test('a started server installs them when the archive is registered, in a virtual environment with useVenv, and says why it could not', async () => {
    const store = tempDir()
    const pack = async (name: string, requirements: string, config = ''): Promise<void> => {
      const handler = `import ${name}\ndef handle(data, context):\n    return data and [${name}.__file__]\n`
      await packPython(environment, store, {
        ...{ name, handler, requirements, config: `minWorkers: 1\nmaxWorkers: 1\n${config}` },
      })
    }
    await pack('served', `${await wheel('served')}\n`)
    await pack('servedvenv', `${await wheel('servedvenv')}\n`, 'useVenv: true\n')
    await pack('unserved', '/no/such.whl\n')
    const server = await startServer({
      modelStore: store,
      config: { python, install_py_dep_per_model: true },
    })
    const register = (name: string) =>
      server.manage('POST', `/models?url=${name}.mar&initial_workers=1&synchronous=true`)
    for (const [name, place] of [
      ['served', 'packages'],
      ['servedvenv', 'venv'],
    ] as const) {
      expect((await register(name)).status).toBe(200)
      const { body } = await rawRequest(server.ports.inference, `/predictions/${name}`, { body: 'x' })
      expect(body).toMatch(new RegExp(`/models/[^/]+/${place}/.*${name}\\.py$`))
    }
    const { status, json } = await register('unserved')
    expect([status, json]).toEqual([
      400,
      {
        code: 400,
        type: 'ModelException',
        message: 'Custom pip package installation failed for model unserved',
      },
    ])
    await server.lines(/pip-unserved.*such\.whl/)
    expect(await server.stop()).toBe(0)
    expect(server.leftovers()).toEqual(['models'])
  })

  test('calling it off ends pip and what pip started', async () => {
    // A source package runs code while pip builds it; no index is asked for what builds it.
    const folder = tempDir()
    const mark = join(folder, 'pid')
    writeFileSync(
      join(folder, 'pyproject.toml'),
      '[build-system]\nrequires=[]\nbuild-backend="slow"\nbackend-path=["."]\n',
    )
    writeFileSync(
      join(folder, 'slow.py'),
      `import os, time\nopen(${JSON.stringify(mark)}, "w").write(str(os.getpid()) + "\\n")\ntime.sleep(600)\n`,
    )
    const prepared = await model(`${folder}\n`)
    const stop = new AbortController()
    const ended = install(prepared, stop.signal)
    ended.catch(() => undefined)
    const pid = await pidIn(mark)
    stop.abort()
    await expect(ended).rejects.toMatchObject({ code: 'DEPENDENCIES_FAILED' })
    await gone(pid)
    await prepared.dispose()
  })
})

async function pidIn(file: string): Promise<number> {
  const { readFileSync } = await import('node:fs')
  for (;;) {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    if (text.endsWith('\n')) return Number(text)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function gone(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 10))
}
