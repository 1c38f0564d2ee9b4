import { testLeftProcesses } from '../security/left-processes.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'

await describePython('What a Python handler started does not outlive its worker', ({ python }) => {
  testLeftProcesses((name, config) => pythonFolder(name, 'parent', config), { python })
})
