"""The output of a command, line by line as it comes."""

import holdfast

with holdfast.sync.local() as host:
    process = host.start("printf 'configure\\r\\ncompile\\nlink'", shell=True)
    for number, line in enumerate(process.lines(), 1):
        print(f"{number}: {line.strip()}")
    print("done:", process.wait().exit_code)
