// Written by `holdfast schema --format typescript`.
// Integers are numbers, exact up to 2^53.  Text in base64 is a string.

/** Every method, with what it takes and gives. */
export interface Calls {
  /** Open or resume a session. */
  "initialize": { params: InitializeParams; result: InitializeResult };
  /** Resume a session, instead of `initialize`, also if another connection has it, which then ends. */
  "session/takeOver": { params: TakeOverParams; result: InitializeResult };
  /** End the session and everything in it; return when that is gone. A new one may be opened then. */
  "session/close": { params?: Record<string, never> | null; result: CloseResult };
  /** Describe the host: its shell, its directories, its capabilities. */
  "environment/info": { params?: Record<string, never> | null; result: EnvironmentInfo };
  /** Answer, to show that the server is alive and the session is open. */
  "environment/status": { params?: Record<string, never> | null; result: StatusResult };
  /** Start a process. The answer is sent before any output of the process. */
  "process/start": { params: StartParams; result: StartResult };
  /** End a process with everything it has started, and start it again under another identifier. */
  "process/restart": { params: RestartParams; result: StartResult };
  /** The processes that the client can ask for, those that are starting or ended included. */
  "process/list": { params: ListParams; result: ListResult };
  /** Return the process with this name or identifier, or whose identifier alone begins like this. */
  "process/find": { params: FindParams; result: ListedProcess };
  /** Forget a process that has ended, with its output; its identifier and its name are free then. */
  "process/remove": { params: RemoveProcessParams; result: Nothing };
  /** Return what processes use, with everything they have started: processor time, memory, output. */
  "process/usage": { params: UsageParams; result: UsageResult };
  /** Return the output of a process, as far as it is kept. */
  "process/read": { params: ReadParams; result: ReadResult };
  /** Return bytes of one stream of a process from a place on, as far as they are kept. */
  "process/readRange": { params: ReadRangeParams; result: ReadRangeResult };
  /** Acknowledge output, so that a process with a window goes on; has no effect on any other process. */
  "process/ack": { params: AckParams; result: Nothing };
  /** Wait for the exit of a process. */
  "process/wait": { params: WaitParams; result: WaitResult };
  /** Wait until a port or a URL answers, a text is printed, a file is there, or the process ends. */
  "process/waitFor": { params: WaitForParams; result: WaitForResult };
  /** Whether a process waits for input at this moment, and whether its terminal shows what is typed. */
  "process/inspect": { params: InspectParams; result: InspectResult };
  /** Return what the terminal of a process shows, as escape sequences that draw it. */
  "process/snapshot": { params: SnapshotParams; result: SnapshotResult };
  /** Write bytes to stdin. An unknown process is an answer here, not an error. */
  "process/write": { params: WriteParams; result: WriteResult };
  /** End the input of a process, after everything that was offered before. */
  "process/closeStdin": { params: CloseStdinParams; result: WriteResult };
  /** Give a terminal another size. */
  "process/resize": { params: ResizeParams; result: Nothing };
  /** Signal a process; nothing happens if there is none. */
  "process/signal": { params: SignalParams; result: Nothing };
  /** End a process and everything it has started, or give up starting it. */
  "process/terminate": { params: TerminateParams; result: TerminateResult };
  /** Have this connection told of all processes of its principal: start, wait for input, end. */
  "events/subscribe": { params: SubscribeParams; result: SubscribeResult };
  /** Have this connection told no more events; has no effect if it was told none. */
  "events/unsubscribe": { params: UnsubscribeParams; result: Nothing };
  /** Read a regular file. */
  "fs/readFile": { params: ReadFileParams; result: ReadFileResult };
  /** Make a file of these bytes, or put them into the one that is there, in place. */
  "fs/writeFile": { params: WriteFileParams; result: Nothing };
  /** Create a directory, with missing parents unless `recursive` is false. */
  "fs/createDirectory": { params: CreateDirectoryParams; result: Nothing };
  /** Return facts about what is at a path. */
  "fs/getMetadata": { params: GetMetadataParams; result: GetMetadataResult };
  /** Return the path of an existing file or directory, without symbolic links. */
  "fs/canonicalize": { params: CanonicalizeParams; result: CanonicalizeResult };
  /** List a directory. */
  "fs/readDirectory": { params: ReadDirectoryParams; result: ReadDirectoryResult };
  /** List what is below a directory, level by level. */
  "fs/walk": { params: WalkParams; result: WalkResult };
  /** Remove a file, a link or a directory. */
  "fs/remove": { params: RemoveParams; result: Nothing };
  /** Copy a file with its mode, a link as it is, or a directory with all that is in it. */
  "fs/copy": { params: CopyParams; result: Nothing };
  /** Give something another path on the same file system. */
  "fs/rename": { params: RenameParams; result: Nothing };
  /** Open a directory, with all that is in it, as a tar archive that is read block by block. */
  "fs/archive": { params: ArchiveParams; result: OpenFileResult };
  /** Open a directory for a tar archive that is written block by block, and unpacked as it arrives. */
  "fs/extract": { params: ExtractParams; result: OpenFileResult };
  /** Open a file under a name of the client's choice, which is good on this connection. */
  "fs/open": { params: OpenFileParams; result: OpenFileResult };
  /** Read bytes at a place of an open file. If the system refuses, the file is closed. */
  "fs/readBlock": { params: ReadBlockParams; result: ReadBlockResult };
  /** Write bytes at an offset of a file that was opened with `replace`; a gap is filled with zeros. */
  "fs/writeBlock": { params: WriteBlockParams; result: Nothing };
  /** Close a file; there need not be one. */
  "fs/close": { params: CloseFileParams; result: Nothing };
  /** Get one notification when one of these paths, or a missing parent of one, appears. */
  "fs/watchMissing": { params: WatchMissingParams; result: WatchMissingResult };
  /** Make an HTTP request from this host. */
  "http/request": { params: HttpRequestParams; result: HttpRequestResult };
  /** Return the plugin, the skills and the manifests in each of some directories. */
  "capabilityRoots/discoverV1": { params: DiscoverRootsParams; result: DiscoverRootsResult };
  /** Return the plugins and the skills that the server's user, or everybody on this host, has installed. */
  "capabilities/discoverV2": { params: DiscoverInstalledParams; result: DiscoverInstalledResult };
  /** Return the wanted keys of Codex's configuration on this host, layer by layer. */
  "environmentConfig/read": { params: ReadConfigParams; result: ReadConfigResult };
}

/** What the client may tell. */
export interface ClientNotifications {
  /** The answer to `initialize` has come; other methods may follow. */
  "initialized": unknown;
}

/** What the server tells. */
export interface ServerNotifications {
  /** A process has written something. */
  "process/output": ProcessOutput;
  /** A process has ended; output may follow if other processes hold it open. */
  "process/exited": ProcessExited;
  /** A process has ended and so has its output: nothing follows. */
  "process/closed": ProcessClosed;
  /** Something has happened to a process of the client's principal, or events were left out. */
  "events/event": EventNotice;
  /** A path of `fs/watchMissing` has appeared or gone. Sent once per watch. */
  "fs/missingChanged": MissingChanged;
  /** Bytes of a streamed body, or its end. */
  "http/request/bodyDelta": HttpBodyDelta;
}

/** Chosen by the client. */
export type RequestId = string | number;

export type Method = keyof Calls;

export type Params<M extends Method> = Calls[M]["params"];

export type Result<M extends Method> = Calls[M]["result"];

export type Request<M extends Method = Method> = {
  [N in M]: { id: RequestId; method: N; trace?: TraceContext | null } & Pick<Calls[N], "params">;
}[M];

export interface Answer<M extends Method = Method> {
  id: RequestId;
  result: Result<M>;
}

export interface ErrorAnswer {
  id: RequestId;
  error: ErrorBody;
}

export type ClientNotification = {
  [N in keyof ClientNotifications]: { method: N; params?: ClientNotifications[N] };
}[keyof ClientNotifications];

export type ServerNotification = {
  [N in keyof ServerNotifications]: { method: N; params: ServerNotifications[N] };
}[keyof ServerNotifications];

export interface InitializeParams {
  /** What the client calls itself; for the record. */
  clientName: string;
  /** The session to resume; null opens a new one. */
  resumeSessionId?: string | null;
  /** The version of the extensions that the client knows: 1. It is then told all that they have to tell. */
  holdfast?: number | null;
}

export interface TakeOverParams {
  sessionId: string;
  /** What the client calls itself; for the record. Default: `""`. */
  clientName?: string;
  /** As in `initialize`. */
  holdfast?: number | null;
}

export interface StartParams {
  /** The client's name for the process, within its session. */
  processId: string;
  /** Program and arguments; a bare name is looked up in `PATH` of the child. */
  argv: string[];
  /** A `file:` URI or a native absolute path; must be a directory. */
  cwd: string;
  /** The child's variables, or what is laid over those of `envPolicy`. */
  env: Record<string, string>;
  /** A terminal of 24 rows and 80 columns instead of pipes. */
  tty: boolean;
  /** Labels; checked and not used. */
  metadata?: Metadata | null;
  /** What the child inherits; without one, nothing. */
  envPolicy?: EnvPolicy | null;
  /** Used if `argv` is the shell's path, `-lc` and a command; otherwise nothing is done with it. */
  shellSnapshot?: ShellSnapshot | null;
  /** A pipe as stdin; otherwise `/dev/null`. A terminal is always writable. Default: `false`. */
  pipeStdin?: boolean;
  /** What the child sees as its own name; the program that runs stays `argv[0]`. */
  arg0?: string | null;
  /** What it may do; null: everything. */
  sandbox?: SandboxContext | null;
  /** Refused unless false. Default: `false`. */
  enforceManagedNetwork?: boolean;
  /** Checked and not used. */
  managedNetwork?: ManagedNetwork | null;
  /** Refused unless null. */
  networkProxy?: NetworkProxy | null;
  /** The terminal's; only with `tty`. */
  size?: TerminalSize | null;
  /** End it after so long. */
  timeoutMs?: number | null;
  /** End it when it has neither said nor been given anything for so long. */
  idleTimeoutMs?: number | null;
  /** When it is ended for one of these reasons: SIGTERM first, and the end so much later. */
  graceMs?: number | null;
  /** Close its output so long after its exit, whoever holds it open. */
  drainMs?: number | null;
  /** Output to keep, instead of 1 MiB. */
  retainBytes?: number | null;
  /** End it when it has said more. */
  outputBytesLimit?: number | null;
  /** What it may use. */
  limits?: ResourceLimits | null;
  /** If this very request was made before, answer with the process that it started. Default: `false`. */
  idempotent?: boolean;
  /** Read only so many bytes ahead of what the client has acknowledged; at most 64 MiB. */
  window?: number | null;
  /** At `outputBytesLimit` drop what follows, and let it run. Default: `false`. */
  truncateOutput?: boolean;
  /** Let the process outlive the session: all clients of the principal reach it, none is notified. Default: `false`. */
  keep?: boolean;
  /** What people call it, at most 200 characters: refused while another one runs under it, free once that has ended. `process/find` finds it by this. */
  name?: string | null;
  /** With `keep`: list it no more once its output has ended, and forget it 30 seconds later. Default: `false`. */
  autoRemove?: boolean;
  /** Write what the terminal shows to a file of the server's host. Needs `tty`. */
  record?: RecordParams | null;
  /** Send its end to this URL, which the operator of the server must have allowed. */
  notifyUrl?: string | null;
  /** Start it as this user of the host: a name, `UID` or `UID:GID`. HOME, USER, LOGNAME and SHELL are that user's, unless the request sets them. */
  user?: string | null;
}

/** Labels that the client's own records use; we only check them. */
export interface Metadata {
  /** A UUID. */
  threadId?: string | null;
  toolCallId?: string | null;
}

export interface EnvPolicy {
  /** Which of the server's variables the child starts from. */
  inherit: InheritMode;
  /** Do not take away what matches `*KEY*`, `*SECRET*` or `*TOKEN*`. */
  ignoreDefaultExcludes: boolean;
  /** Patterns of names to take away. */
  exclude: string[];
  /** Variables to add. */
  set: Record<string, string>;
  /** Patterns of names to keep; empty keeps all. */
  includeOnly: string[];
}

/** Which of the server's variables a child starts from. */
export type InheritMode = "core" | "all" | "none";

/** Reads the profiles of a login shell once, and restores what they set up for later commands. */
export interface ShellSnapshot {
  /** Commands of one session with the same scope share what was read; 1 to 256 bytes. */
  scopeId: string;
  shell: Shell;
}

/** A shell of the client's choice. */
export interface Shell {
  /** `bash`, `zsh` or `sh`. */
  name: string;
  /** The program, as `argv` names it. */
  path: string;
}

export interface SandboxContext {
  permissions: Managed | Disabled | External;
  /** Required, and means nothing here. */
  windowsSandboxLevel: SandboxLevel;
  /** What relative patterns are relative to; that of the process if there is one. */
  cwd?: string | null;
  /** What `project_roots` stands for. Absent: nothing; but `cwd`, if that is a native path. */
  workspaceRoots?: string[];
  /** Default: `false`. */
  windowsSandboxPrivateDesktop?: boolean;
  windowsSandboxProxySettingsMode?: ProxySettingsMode | null;
  /** Means nothing here: what keeps the sandbox is chosen when the server starts. Default: `false`. */
  useLegacyLandlock?: boolean;
  sandboxOverride?: SandboxOverride | null;
  userHomeDir?: string | null;
  temporaryDirectories?: string[] | null;
  /** The least that is good enough; null is `soft`. */
  protectsSubpaths?: LeastProtection | null;
}

export interface Managed {
  type: "managed";
  file_system: Restricted | Unrestricted;
  network: NetworkAccess;
}

export interface Restricted {
  type: "restricted";
  entries: PermissionEntry[];
  /** How many directories deep `**` looks. */
  glob_scan_max_depth?: number | null;
}

export interface PermissionEntry {
  path: PathEntry | PatternEntry | SpecialEntry;
  access: EntryAccess;
  missing_path_behavior?: MissingPath | null;
}

export interface PathEntry {
  type: "path";
  /** A `file:` URI or a native absolute path. */
  path: string;
}

export interface PatternEntry {
  type: "glob_pattern";
  /** `*` and `?` stay inside a directory, `**` does not; relative to `cwd`. */
  pattern: string;
}

export interface SpecialEntry {
  type: "special";
  value: RootPlace | Minimal | WorkingDirectory | ProjectRoots | TmpdirPlace | SlashTmp | UnknownPlace;
}

/** `/`. */
export interface RootPlace {
  kind: "root";
}

/** What programs need to run at all. */
export interface Minimal {
  kind: "minimal";
}

/** The former name of `project_roots`. */
export interface WorkingDirectory {
  kind: "current_working_directory";
  subpath?: string | null;
}

export interface ProjectRoots {
  kind: "project_roots";
  subpath?: string | null;
}

/** The directory that `TMPDIR` of the command names. */
export interface TmpdirPlace {
  kind: "tmpdir";
}

/** `/tmp`. */
export interface SlashTmp {
  kind: "slash_tmp";
}

/** A place of a kind that this version does not know. The entry is ignored. */
export interface UnknownPlace {
  kind: "unknown";
  path: string;
  subpath?: string | null;
}

export type EntryAccess = "read" | "write" | "deny" | "none";

export type MissingPath = "skip";

export interface Unrestricted {
  type: "unrestricted";
}

export type NetworkAccess = "restricted" | "enabled";

/** No sandbox. */
export interface Disabled {
  type: "disabled";
}

/** The client says that another sandbox protects the files already. */
export interface External {
  type: "external";
  network: NetworkAccess;
}

/** How clients sandbox commands on Windows. The server checks it and does not use it. */
export type SandboxLevel = "disabled" | "restricted-token" | "elevated" | "mxc";

/** How clients set proxies on Windows. The server checks it and does not use it. */
export type ProxySettingsMode = "reconcile" | "preserve-during-bootstrap";

/** Whether a client has overridden its own sandbox. The server checks it and does not use it. */
export type SandboxOverride = "noOverride" | "escalatedSandboxWithRestrictions" | "bypassSandboxFirstAttempt";

/** How well something inside a writable place must be kept from being written. */
export type LeastProtection = "hard" | "soft" | "none";

export interface ManagedNetwork {
  /** Default: `[]`. */
  loopbackPorts?: number[];
  /** Default: `false`. */
  allowLocalBinding?: boolean;
}

/** Whatever is in it: it is refused as a whole. */
export interface NetworkProxy {}

/** Rows and columns of characters, at least 1 each. */
export interface TerminalSize {
  rows: number;
  cols: number;
}

/** What a process and everything it starts may use together; at least 1 each. */
export interface ResourceLimits {
  memoryBytes?: number | null;
  cpuSeconds?: number | null;
  /** At once, the first included. */
  processes?: number | null;
  /** Of each process. */
  openFiles?: number | null;
}

/** A recording of a terminal, which the server writes. */
export interface RecordParams {
  /** A `file:` URI or a native absolute path, at which there is nothing. */
  path: string;
  /** Record what is typed, too, passwords included. Default: `false`. */
  input?: boolean;
  /** How long the file may get, at least 1024; null: 64 MiB. */
  maxBytes?: number | null;
  /** As with `fs/writeFile`: what may be written to. */
  sandbox?: SandboxContext | null;
}

export interface RestartParams {
  /** A process that was started with `keep`. */
  processId: string;
  /** The identifier of the process that takes its place. */
  newProcessId: string;
  /** If it runs: SIGTERM first, and the end so much later. */
  graceMs?: number | null;
}

export interface ListParams {
  /** Tell of each running process whether it waits for input; for clients that know the extensions. */
  inspect?: boolean | null;
}

export interface FindParams {
  /** Its name, its identifier, or at least 4 characters with which only its identifier begins. */
  name: string;
}

export interface RemoveProcessParams {
  processId: string;
}

export interface UsageParams {
  /** Of these only: names or identifiers. Null: of all that `process/list` has. */
  names?: string[] | null;
}

export interface ReadParams {
  processId: string;
  /** Only chunks with a higher number; null is 0. The others are acknowledged by it. */
  afterSeq?: number | null;
  /** Stop before the chunk that would go over it; the first is given whatever its size. */
  maxBytes?: number | null;
  /** Hold an empty answer back for so long, until there is output, exit or close; null is 0. */
  waitMs?: number | null;
}

export interface ReadRangeParams {
  processId: string;
  /** The place in the stream: how many of its bytes come before; null is 0. */
  offset?: number | null;
  /** How many bytes at the most; null: as many as one answer has. */
  length?: number | null;
  /** Null: the terminal, if there is one, and else `stdout`. */
  stream?: Stream | null;
}

/** Where a chunk came from. A terminal has one stream for both outputs. */
export type Stream = "stdout" | "stderr" | "pty";

export interface AckParams {
  processId: string;
  /** The client has everything up to this number; null: nothing that it had not before. */
  seq?: number | null;
  /** Hold the process no longer, whatever is acknowledged from now on. Default: `false`. */
  release?: boolean;
}

export interface WaitParams {
  processId: string;
  /** Wait so long for the exit; null is 0. */
  waitMs?: number | null;
}

export interface WaitForParams {
  processId: string;
  /** Until this TCP port at the loopback address of the server's host takes a connection. */
  port?: number | null;
  /** Until a GET is answered with a status below 400; redirects are not followed. */
  url?: string | null;
  /** Until this regular expression is found in the output, which is searched from its begin. */
  output?: string | null;
  /** Until something is there. */
  file?: string | null;
  /** Wait so long; null is 0: one attempt. */
  waitMs?: number | null;
}

export interface InspectParams {
  processId: string;
}

export interface SnapshotParams {
  processId: string;
}

export interface WriteParams {
  processId: string;
  /** The bytes, in base64 with padding. */
  chunk: string;
  /** Not empty; the same one is written once. The last 4,096 accepted ones are remembered. Without one (clients up to 0.140 send none) the bytes are written, and a retry would write them again. */
  writeId?: string | null;
}

export interface CloseStdinParams {
  processId: string;
  /** An identifier that is sent again takes effect once, as with `process/write`. */
  writeId?: string | null;
}

export interface ResizeParams {
  processId: string;
  size: TerminalSize;
}

export interface SignalParams {
  processId: string;
  signal: SignalName;
  /** To everybody that it has started, instead of its process group. */
  tree?: boolean | null;
}

export type SignalName = "interrupt" | "terminate" | "kill" | "hangup" | "quit" | "user1" | "user2" | "stop" | "continue";

export interface TerminateParams {
  processId: string;
  /** SIGTERM first, and the end so much later. If given, what an exited one left behind is ended too. */
  graceMs?: number | null;
}

export interface SubscribeParams {}

export interface UnsubscribeParams {}

export interface ReadFileParams {
  path: string;
  /** False: no part of the path may be a symbolic link. */
  followSymlinks?: boolean | null;
  /** Read it as a command inside of this could. */
  sandbox?: SandboxContext | null;
}

export interface WriteFileParams {
  path: string;
  /** The bytes, in base64 with padding. */
  dataBase64: string;
  followSymlinks?: boolean | null;
  sandbox?: SandboxContext | null;
  /** Of a file that is made, whatever the umask is; 420 is 0o644. One that is there keeps its own. */
  permissions?: number | null;
}

export interface CreateDirectoryParams {
  path: string;
  /** With all above it, and it may be there already; null is true. */
  recursive?: boolean | null;
  followSymlinks?: boolean | null;
  sandbox?: SandboxContext | null;
}

export interface GetMetadataParams {
  path: string;
  followSymlinks?: boolean | null;
  sandbox?: SandboxContext | null;
}

export interface CanonicalizeParams {
  path: string;
  sandbox?: SandboxContext | null;
}

export interface ReadDirectoryParams {
  path: string;
  /** List links that lead nowhere, too, and say of every entry whether it is a link. Default: `false`. */
  danglingLinks?: boolean;
  sandbox?: SandboxContext | null;
}

export interface WalkParams {
  path: string;
  options: WalkOptions;
  sandbox?: SandboxContext | null;
}

export interface WalkOptions {
  /** Directories so many levels below `path` are entered, those further below are not; at most 64. */
  maxDepth: number;
  /** Directories to enter, at most 10,000. */
  maxDirectories: number;
  /** Names to look at, at most 50,000. */
  maxEntries: number;
  /** Enter directories through links, each directory once. */
  followDirectorySymlinks: boolean;
  /** Name hidden directories, and do not enter them. Default: `false`. */
  pruneHiddenDirectories?: boolean;
}

export interface RemoveParams {
  path: string;
  /** A directory with all that is in it; null is true. */
  recursive?: boolean | null;
  /** There need not be anything; null is true. */
  force?: boolean | null;
  /** A link at the end of the path is removed, not what it leads to; with false it is refused. */
  followSymlinks?: boolean | null;
  sandbox?: SandboxContext | null;
}

export interface CopyParams {
  sourcePath: string;
  destinationPath: string;
  /** Needed for a directory. */
  recursive: boolean;
  sandbox?: SandboxContext | null;
}

export interface RenameParams {
  sourcePath: string;
  /** On the same file system; a file that is there is replaced. */
  destinationPath: string;
  sandbox?: SandboxContext | null;
}

export interface ArchiveParams {
  /** As in `fs/open`. */
  handleId: string;
  /** A directory. */
  path: string;
  sandbox?: SandboxContext | null;
}

export interface ExtractParams {
  /** As in `fs/open`. */
  handleId: string;
  /** The directory to unpack to; it is made, with all above it, if it is not there. */
  path: string;
  /** Make links that lead out of the tree, too, instead of refusing them. Default: `false`. */
  outsideLinks?: boolean;
  sandbox?: SandboxContext | null;
}

export interface OpenFileParams {
  /** The client's name for the open file, on this connection; at most 32 bytes. */
  handleId: string;
  path: string;
  /** Default: `"read"`. */
  mode?: OpenMode;
  sandbox?: SandboxContext | null;
  /** With `replace`, as in `fs/writeFile`. */
  permissions?: number | null;
}

export type OpenMode = "read" | "replace";

export interface ReadBlockParams {
  handleId: string;
  offset: number;
  /** 1 to 1,048,576 bytes. */
  len: number;
}

export interface WriteBlockParams {
  handleId: string;
  offset: number;
  /** 1 to 1,048,576 bytes, in base64 with padding. */
  chunk: string;
}

export interface CloseFileParams {
  handleId: string;
}

export interface WatchMissingParams {
  /** Larger than that of every watch before it on this connection; it takes the place of the last one. */
  watchId: number;
  /** At most 64 paths. */
  missing: string[];
  /** Something that is there, and whose end is to be told too. */
  present?: string | null;
}

export interface HttpRequestParams {
  /** As it is sent: capitals are the caller's. */
  method: string;
  /** `http:` or `https:`. */
  url: string;
  /** The client's name for the request; one stream at a time goes by it. */
  requestId: string;
  /** Sent in this order, repeats included; names in lower case. Default: `[]`. */
  headers?: RequestHeader[];
  /** The bytes of the body, in base64. */
  bodyBase64?: string | null;
  /** For the whole exchange, the body of the response included; null is no limit. */
  timeoutMs?: number | null;
  /** Default: `"follow"`. */
  redirectPolicy?: RedirectPolicy;
  /** Answer with an empty body, and tell the body in notifications. Default: `false`. */
  streamResponse?: boolean;
}

/** A header of a request. */
export interface RequestHeader {
  name: string;
  value: string;
  /** A variable of the server whose value is put behind `value`. Some are refused. */
  valueEnvVar?: string | null;
}

export type RedirectPolicy = "follow" | "stop";

export interface DiscoverRootsParams {
  /** At most 128. */
  roots: CapabilityRoot[];
}

export interface CapabilityRoot {
  /** A name of the client's choice, which is in the answer. */
  id: string;
  /** URI of the directory. */
  path: string;
  /** Nothing is told of the directory that a command in this sandbox could not read. */
  sandbox?: SandboxContext | null;
}

export interface DiscoverInstalledParams {
  /** URI of a directory of this host; what is installed does not depend on it. */
  cwd: string;
  /** Nothing is told of what a command in this sandbox could not read. */
  sandbox?: SandboxContext | null;
}

export interface ReadConfigParams {
  /** URI of a directory of this host; which layers there are does not depend on it. */
  cwd: string;
  /** Keys of the configuration, each as its way from the top: `["tools", "web"]`. */
  configPaths: string[][];
  /** Keys of the requirements. */
  requirementsPaths: string[][];
}

export interface InitializeResult {
  /** Name it in `resumeSessionId` to come back. */
  sessionId: string;
  environmentInfo: EnvironmentInfo;
}

export interface EnvironmentInfo {
  /** The login shell of the server's user. */
  shell: ShellInfo;
  /** The version of holdfast, for a client that asks for extensions; else that of the reference's server whose place it takes, because clients leave out methods that older ones lack. */
  executorVersion: string;
  /** `sha256:HEX`, the same for as long as the host's installation. */
  providerId: string;
  /** URI of the server's directory. */
  cwd: string;
  /** URI; absent if there is none. */
  userHomeDir?: string;
  /** `linux`. */
  platformOs: string;
  /** Empty. */
  prependPathDirs: string[];
  /** URIs, from the server's `TMPDIR`; empty if it is not set. */
  temporaryDirectories: string[];
  /** URI of the directory for temporary files. */
  tempDir: string;
  /** Optional features; what is false is not there in this version. */
  capabilities: Capabilities;
}

export interface ShellInfo {
  name: string;
  path: string;
}

/** What this server can do beyond processes; true only if it works. */
export interface Capabilities {
  networkProxyLaunch: boolean;
  networkProxyReviewDomains: boolean;
  credentialMasking: boolean;
  credentialMaskingCustomProviders: boolean;
  capabilityDiscoverySandbox: boolean;
  fsWatchMissing: boolean;
  capabilityDiscoveryV2: boolean;
  environmentConfigRead: boolean;
  httpHeaderEnvVars: boolean;
  sandboxedFileStreaming: boolean;
  fileWriteStreaming: boolean;
  shellSnapshotV2: boolean;
  windowsMxc: boolean;
  linuxRootWritePreservesDevices: boolean;
  linuxApprovedRootWritePreservesRestrictions: boolean;
  holdfast?: Extensions;
}

/** What this server does beyond the protocol. */
export interface Extensions {
  version: number;
  features: string[];
  /** Whether ending a process ends everything it has started, whatever that has done to escape. */
  treeExact: boolean;
  sandbox: Sandboxes;
  /** Whether sessions and processes outlive a crash of the server. */
  durable: boolean;
}

/** What sandboxes are worth on this host. */
export interface Sandboxes {
  /** `bubblewrap` or `landlock`; null: there are none, and whoever asks for one is refused. */
  backend: string | null;
  /** `mount` or `landlock`. */
  filesystem: string | null;
  /** How well something inside a writable place is kept as it is: `hard`, `soft` or `none`. */
  protectsSubpaths: string;
  /** Whether `sandboxDenied` is `exact` or a `guess`. */
  denial: string;
  /** What a sandboxed command can do although nothing allows it. */
  weaknesses: string[];
  /** Why it is none of the better ones. */
  reason: string;
}

export interface CloseResult {
  /** Pids of those who could not be ended. */
  survivors: number[];
}

export interface StatusResult {
  /** `ready`. */
  status: string;
}

export interface StartResult {
  processId: string;
  /** `linuxSeccomp` in a sandbox, else `none`. */
  sandboxType: string;
  /** Of an idempotent start: whether the process was there before. */
  existing?: boolean;
  /** For each limit that was asked for, who keeps it: `cgroup`, `rlimit` or `sampled`. */
  limits?: Record<string, string>;
  /** Told to clients that know the extensions. */
  pid?: number;
}

export interface ListResult {
  /** The session's, then the kept ones; in the order in which they were asked for, as many as fit. */
  processes: ListedProcess[];
  /** Told if there are more, which did not fit. */
  more?: boolean;
}

export interface ListedProcess {
  processId: string;
  /** Cut after about 1,024 characters, with `...` as the last element then. */
  argv: string[];
  /** URI. */
  cwd: string;
  tty: boolean;
  /** When it was asked for, in milliseconds since 1970. */
  startedAtMs: number;
  state: ProcessState;
  /** Null while it starts. */
  pid: number | null;
  exitCode: number | null;
  outcome: Outcome | null;
  nextSeq: number;
  retainedBytes: number;
  /** Told if it belongs to no client. */
  kept?: boolean;
  /** What people call it, if it was given a name. */
  name?: string;
  /** Told of a running process if `inspect` was asked for: as in `process/inspect`. */
  waitingForInput?: boolean | null;
}

/** How far a process is. A member equals its word, and prints as it. */
export type ProcessState = "starting" | "running" | "exited" | "closed";

/** How a process ended, and why. */
export interface Outcome {
  kind: Kind;
  /** Null after death by signal. */
  exitCode: number | null;
  /** The signal it died of, as in `SIGKILL`. */
  signal: string | null;
  /** Who ended it: `client` or `limit`. */
  by: string | null;
  /** The reason in words. */
  detail: string | null;
}

/** Why a process ended. */
export type Kind = "exit" | "signal" | "timeout" | "idleTimeout" | "oom" | "outputLimit" | "cpuLimit" | "terminated" | "sandboxDenied" | "lost";

/** `{}`. */
export interface Nothing {}

export interface UsageResult {
  /** As many as fit, without those of whom nobody is left. */
  processes: MeasuredUsage[];
  /** Told if there are more, which did not fit. */
  more?: boolean;
}

/** What a process and everything it has started use. */
export interface MeasuredUsage {
  processId: string;
  /** Processor time since it began, that of those who have ended included. */
  cpuMs: number;
  /** Memory of all of them together; what several of them share counts several times. */
  residentBytes: number;
  /** How many of them there are. */
  processes: number;
  /** Bytes of output up to now, of all that was kept at some time. */
  outputBytes: number;
  /** How long ago this was seen: who asks often, or about a large tree, is told the same again. */
  ageMs: number;
  /** What people call it, if it was given a name. */
  name?: string;
}

export interface ReadResult {
  /** What is kept, in order. */
  chunks: OutputChunk[];
  /** With `maxBytes` and chunks: one more than the last chunk. Otherwise the number of the next event. */
  nextSeq: number;
  /** Whether the process has ended. */
  exited: boolean;
  /** 128 + n after death by signal n; null while the process runs. */
  exitCode: number | null;
  /** Whether its output has ended too. */
  closed: boolean;
  /** Always null. */
  failure: string | null;
  /** Whether the process has failed, and its sandbox had refused it something. */
  sandboxDenied: boolean;
  /** What the sandbox has refused; told if there is anything. */
  denials?: Denial[];
  /** `exact` if that was seen, `guess` if concluded from the output; told with the extensions. */
  denial?: string;
  /** What is missing before the first chunk; told if there is anything. */
  gap?: OutputGap | null;
  /** Told of an exited process. A client that does not know the extensions is not told of kind `exit`. */
  outcome?: Outcome;
  /** Of an exited process; told to clients that know the extensions. */
  usage?: Usage;
  /** Pids of those who held the output open after its exit; told to the same, if there are any. */
  heldBy?: number[];
  /** Bytes of output beyond the limit that were dropped up to its exit; told if there are any. */
  droppedBytes?: number;
}

/** Bytes of one stream, with their number. */
export interface OutputChunk {
  seq: number;
  stream: Stream;
  /** The bytes, in base64. */
  chunk: string;
}

/** Something that a sandbox has refused, although it would have worked without one. */
export interface Denial {
  /** The name of a system call; empty stands for more than can be listed. */
  op: string;
  /** What it was about: a path, or a kind of socket. */
  path: string;
  count: number;
}

/** Output that is no longer kept. */
export interface OutputGap {
  fromSeq: number;
  /** The last number of it. */
  toSeq: number;
  /** Null if so much was dropped that nobody knows. */
  bytes: number | null;
}

/** What a process used, and those whom it had waited for. */
export interface Usage {
  userMs: number;
  systemMs: number;
  /** Of the largest of them. */
  maxRssBytes: number;
}

export interface ReadRangeResult {
  stream: Stream;
  /** As it was asked for. */
  offset: number;
  /** What is there, in base64; empty if it is no longer kept, or does not exist yet. */
  data: string;
  /** Where to go on: behind `data`, or at `firstOffset` if what was asked for is no longer kept. */
  next: number;
  /** How many bytes this stream had when it was looked at. */
  total: number;
  /** The place of the oldest byte that is kept; `total` if none is. */
  firstOffset: number;
  /** Whether nothing more will come in this stream. */
  ended: boolean;
}

export interface WaitResult {
  exited: boolean;
  exitCode: number | null;
  outcome: Outcome | null;
  usage: Usage | null;
  /** Pids of those who hold the output of an exited process open, as far as they were seen. */
  heldBy: number[];
  closed: boolean;
  /** As in the answer to `process/read`; told of an exited process that has a sandbox. */
  sandboxDenied?: boolean;
  /** As in the answer to `process/read`. */
  denials?: Denial[];
  /** As in the answer to `process/read`. */
  denial?: string;
  /** As in the answer to `process/read`. */
  droppedBytes?: number;
}

export interface WaitForResult {
  end: WaitEnd;
  /** The line with the text, as far as it had come; of a long one the last 4,096 bytes. */
  line: string | null;
  /** The number of the output in which the text ends. */
  seq: number | null;
  /** What the URL was answered with at last. */
  status: number | null;
  exitCode: number | null;
  /** How the process has ended, if it has. */
  outcome: Outcome | null;
  usage: Usage | null;
  /** Why the last attempt was none. */
  trouble: string | null;
  /** Whether output was dropped before it could be searched. */
  missed: boolean;
}

/** How a wait has ended. */
export type WaitEnd = "met" | "exited" | "timeout";

export interface InspectResult {
  /** Whether one of its tree is blocked in a call that input would wake; null: the kernel does not tell. */
  waitingForInput: boolean | null;
  /** Whether its terminal shows what is typed; null without a terminal. */
  echo: boolean | null;
  /** Whether its terminal hands over whole lines; null without a terminal. */
  canonical: boolean | null;
}

export interface SnapshotResult {
  /** The last number that is drawn: `process/read` behind it goes on from here. */
  seq: number;
  size: ScreenSize;
  /** Escape sequences, in base64, that put any terminal of this size into the same state. */
  data: string;
  cursor: CursorPlace;
  title: string;
  /** Whether a full-screen program has the alternate screen. */
  alternateScreen: boolean;
  /** Whether all output was drawn; if not, some was no longer kept. */
  complete: boolean;
}

/** Rows and columns of characters. */
export interface ScreenSize {
  rows: number;
  cols: number;
}

/** Where a cursor is, counted from 1, and what it looks like. */
export interface CursorPlace {
  row: number;
  col: number;
  visible: boolean;
  /** As a program has chosen it; `default` if none has. */
  shape: CursorShape;
  blinking: boolean;
}

/** The shape of a cursor, as programs choose it. */
export type CursorShape = "default" | "block" | "underline" | "bar";

export interface WriteResult {
  /** `accepted`, `stdinClosed`, `unknownProcess` or `starting`. */
  status: string;
}

export interface TerminateResult {
  /** Whether there was something to end. */
  running: boolean;
  /** Pids of those who could not be ended. */
  survivors: number[];
  /** Whether everybody whom the process had started was in sight. */
  treeExact: boolean;
}

export interface SubscribeResult {
  /** The number of the first event that is told. */
  nextSeq: number;
}

export interface ReadFileResult {
  /** The bytes, in base64. */
  dataBase64: string;
}

export interface GetMetadataResult {
  isDirectory: boolean;
  /** A regular file. */
  isFile: boolean;
  /** Whether the path itself is a link; the rest is about what it leads to. */
  isSymlink: boolean;
  size: number;
  /** In milliseconds since 1970; 0 if the file system does not tell. */
  createdAtMs: number;
  modifiedAtMs: number;
  /** The permission bits, as 420 for 0o644; told to clients that know the extensions. */
  permissions?: number;
}

export interface CanonicalizeResult {
  /** URI. */
  path: string;
}

export interface ReadDirectoryResult {
  /** In the directory's own order; links that lead nowhere are left out, unless they were asked for. */
  entries: DirectoryEntry[];
}

/** A name in a directory, with the kind of what it leads to. */
export interface DirectoryEntry {
  /** With U+FFFD for bytes that are not UTF-8. */
  fileName: string;
  isDirectory: boolean;
  isFile: boolean;
  /** Told if the name is not UTF-8: the URI that names it exactly. */
  path?: string;
  /** Told if `danglingLinks` was asked for. */
  isSymlink?: boolean;
}

export interface WalkResult {
  /** Level by level, in the order of the names; links to files and special files are left out. */
  entries: FoundEntry[];
  errors: FoundError[];
  /** Whether there was more than the options, or one message of about 4 MiB, let through. */
  truncated: boolean;
}

export interface FoundEntry {
  /** URI. */
  path: string;
  kind: WalkKind;
}

export type WalkKind = "directory" | "file";

/** Something that could not be looked at. */
export interface FoundError {
  /** URI. */
  path: string;
  message: string;
}

export interface OpenFileResult {
  handleId: string;
}

export interface ReadBlockResult {
  /** The bytes, in base64. */
  chunk: string;
  /** Whether they are fewer than was asked for. */
  eof: boolean;
}

export interface WatchMissingResult {
  /** False if there is nothing to wait for, or no way to hear of it. */
  watching: boolean;
}

export interface HttpRequestResult {
  /** Of the last response, when redirects were followed. */
  status: number;
  /** As they came, repeats included, without those whose value is no ASCII text. */
  headers: ResponseHeader[];
  /** The bytes of the body as they came, in base64; empty if it is streamed. */
  bodyBase64: string;
}

/** A header of a response. */
export interface ResponseHeader {
  /** In lower case. */
  name: string;
  value: string;
}

export interface DiscoverRootsResult {
  /** In the order of the request. */
  roots: DiscoveredRoot[];
}

export interface DiscoveredRoot {
  id: string;
  /** URI, without dots. */
  path: string;
  /** If the directory itself is a plugin's. */
  plugin: DiscoveredPlugin | null;
  /** In the order of their URIs. */
  skills: DiscoveredSkill[];
  /** Manifests of the directory and of those below it, in the order of their URIs. */
  namespaceManifests: TextFile[];
  /** What could not be looked at, and what was left out. */
  warnings: string[];
  /** Why there is nothing else. */
  error: string | null;
}

export interface DiscoveredPlugin {
  /** `plugin.json` in `.codex-plugin`, `.claude-plugin` or `.cursor-plugin`; the first that can be read. */
  manifest: TextFile;
  /** The file that `mcpServers` of the manifest names, else `.mcp.json`; null if the manifest has an object there. */
  mcpConfig: TextFile | null;
  /** The file that `apps` of the manifest names, else `.app.json`. */
  appsConfig: TextFile | null;
}

export interface TextFile {
  /** URI. */
  path: string;
  contents: string;
}

export interface DiscoveredSkill {
  /** A `SKILL.md`. */
  instructions: TextFile;
  /** `agents/openai.yaml` beside it. */
  metadata: TextFile | null;
}

export interface DiscoverInstalledResult {
  /** In the order of their names. */
  plugins: InstalledPlugin[];
  /** Root by root, in the order of their URIs. */
  skills: InstalledSkill[];
  warnings: string[];
}

export interface InstalledPlugin {
  /** `NAME@MARKETPLACE`. */
  id: string;
  displayName: string;
  /** Null. */
  remotePluginId: string | null;
  version: string;
  /** URI. */
  root: string;
  files: DiscoveredPlugin;
  skills: PluginSkill[];
}

export interface PluginSkill {
  /** With the name of its plugin, if it belongs to one: `choir:sing`. */
  name: string;
  description: string;
  shortDescription: string | null;
  /** URI of its `SKILL.md`. */
  path: string;
  dependencies: SkillDependencies | null;
  policy: SkillPolicy | null;
}

export interface SkillDependencies {
  tools: SkillTool[];
}

export interface SkillTool {
  type: string;
  value: string;
  description: string | null;
  transport: string | null;
  command: string | null;
  url: string | null;
  /** Null. */
  oauthCallbackPort: number | null;
}

export interface SkillPolicy {
  allowImplicitInvocation: boolean | null;
  products: string[];
}

export interface InstalledSkill {
  name: string;
  description: string;
  shortDescription: string | null;
  path: string;
  dependencies: SkillDependencies | null;
  policy: SkillPolicy | null;
  discoveryRoot: SkillRoot;
}

export interface SkillRoot {
  /** `codex-home-skills`, `user-agent-skills` or `system-skills`. */
  id: string;
  /** URI. */
  path: string;
}

export interface ReadConfigResult {
  /** URI. */
  userHomeDir: string | null;
  /** URI: `CODEX_HOME` of the server, or `.codex` in the home. */
  codexHomeDir: string | null;
  hostname: string;
  config: ConfigLayers;
  requirements: ConfigLayers;
}

export interface ConfigLayers {
  /** The weakest first; without those that have none of the keys. */
  layers: ConfigLayer[];
  /** Where a layer that the client has from elsewhere belongs among them. */
  cloudInsertionIndex: number;
}

export interface ConfigLayer {
  /** What the layer is, in words for people. */
  source: string;
  /** URI of the directory that relative paths in it are relative to. */
  baseDir: string;
  /** The keys that were asked for, as far as the layer has them. */
  toml: string;
}

/** A process has written something. */
export interface ProcessOutput {
  processId: string;
  /** Output, exit and close of a process share one gapless series of numbers. */
  seq: number;
  stream: Stream;
  /** The bytes, in base64; at most 64 KiB of them. */
  chunk: string;
}

/** A process has ended; output may follow if other processes hold it open. */
export interface ProcessExited {
  processId: string;
  seq: number;
  /** 128 + n after death by signal n. */
  exitCode: number;
  /** As in the answer to `process/read`. */
  sandboxDenied: boolean;
  /** As in the answer to `process/read`. */
  denials?: Denial[];
  /** As in the answer to `process/read`. */
  denial?: string;
  /** As in the answer to `process/read`. */
  outcome?: Outcome;
  /** Told to clients that know the extensions. */
  usage?: Usage;
  /** Pids of those who hold the output open, as far as a glance shows; told if there are any. */
  heldBy?: number[];
  /** As in the answer to `process/read`. */
  droppedBytes?: number;
}

/** A process has ended and so has its output: nothing follows. */
export interface ProcessClosed {
  processId: string;
  seq: number;
}

/** Something has happened to a process of the client's principal, or events were left out. */
export interface EventNotice {
  /** Counts the events of the principal; of a `gap`, the last one that was left out. */
  seq: number;
  kind: EventKind;
  /** When it was noticed, in milliseconds since 1970. */
  atMs: number;
  /** Absent for a `gap`. */
  processId?: string;
  /** What people call the process, if it was given a name. */
  name?: string;
  pid?: number;
  /** Told of a start: cut as in `process/list`. */
  argv?: string[];
  /** Told of a start. */
  tty?: boolean;
  /** Told of a start: whether it belongs to no client. */
  kept?: boolean;
  /** Told of an exit: 128 + n after death by signal n. */
  exitCode?: number;
  /** Told of an exit. */
  outcome?: Outcome;
  /** Told of an exit, if it is known. */
  usage?: Usage;
  /** Told of a `gap`: how many events were left out. */
  lost?: number;
}

/** What has happened. */
export type EventKind = "started" | "waiting" | "resumed" | "exited" | "forgotten" | "gap";

/** A path of `fs/watchMissing` has appeared or gone. Sent once per watch. */
export interface MissingChanged {
  watchId: number;
}

/** Bytes of a streamed body, or its end. */
export interface HttpBodyDelta {
  requestId: string;
  /** From 1, without gaps. */
  seq: number;
  /** The bytes, in base64; at most 1 MiB of them, none in the last one. */
  deltaBase64: string;
  /** True in the last one. */
  done: boolean;
  /** Why the body is incomplete; null if it is not. */
  error: string | null;
}

/** The caller's trace (W3C). */
export interface TraceContext {
  traceparent?: string | null;
  tracestate?: string | null;
}

/** An error, as an answer carries it. */
export interface ErrorBody {
  code: number;
  message: string;
  data?: unknown;
}
