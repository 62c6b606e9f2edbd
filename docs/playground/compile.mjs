// Compiles the modules of an archive with the Python of Pyodide, so that the browser does not have to, and runs them on
// the first example, whose result the page shows until Python is loaded: node compile.mjs FOLDER ARCHIVE
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, archive] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${folder}/`, packages: ["pydantic-core"] });
python.FS.writeFile("/in.zip", readFileSync(`${folder}/${archive}`));
python.runPython(`
import py_compile, sys, zipfile

def compiled(name, source):
    with open("/module.py", "wb") as file:
        file.write(source)
    py_compile.compile("/module.py", "/module.pyc", dfile=name, doraise=True,
                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    with open("/module.pyc", "rb") as file:
        return file.read()

with zipfile.ZipFile("/in.zip") as sources, zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED) as result:
    for each in sources.infolist():
        name, content = each.filename, sources.read(each)
        if name.endswith(".py"):
            name, content = f"{name}c", compiled(name, content)
        result.writestr(zipfile.ZipInfo(name, each.date_time), content, zipfile.ZIP_DEFLATED)

sys.path.insert(0, "/out.zip")
import ocf.simulation.browser
`);
writeFileSync(`${folder}/${archive}`, python.FS.readFile("/out.zip"));

// Node.js reads a file named .js as a module in newer versions only.
const source = readFileSync(`${folder}/files.js`, "utf8");
const { filesOf } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
const [example] = JSON.parse(readFileSync(`${folder}/examples.json`, "utf8"));
const { answer } = python.pyimport("ocf.simulation.browser");
writeFileSync(`${folder}/recorded.json`, answer(JSON.stringify({ files: filesOf(example) })));
