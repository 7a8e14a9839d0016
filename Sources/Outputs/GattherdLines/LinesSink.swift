import GattherdConfig
package import GattherdModel
package import GattherdOutputs
import GattherdSync

/// Writes one JSON line for each entry to a file or a named pipe; blocks only its own thread.
package actor LinesSink: BatchSink {
    private enum Target {
        case file(LinesFile)
        case pipe(LinesPipe)

        var isCurrent: Bool {
            switch self {
            case .file(let file): file.isCurrent
            case .pipe(let pipe): pipe.isCurrent
            }
        }
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }
    private nonisolated let loop = EventLoop(name: "lines")
    private let settings: LinesSettings
    private let path: LinesPath
    private var target: Target?

    package init(_ settings: LinesSettings) {
        self.settings = settings
        path = LinesPath(settings.path.value)
    }

    deinit {
        loop.stop()
    }

    package func write(_ entries: [JournalEntry]) throws(OutputFault) {
        let text = EntryLines.text(of: entries)
        switch try openTarget() {
        case .file(let file): try append(text, to: file)
        case .pipe(let pipe): try append(text, to: pipe)
        }
    }

    package func close() {
        closeTarget()
    }

    private func closeTarget() {
        if case .pipe(let pipe)? = target { loop.unwatch(pipe.descriptor) }
        target = nil
    }

    /// Returns the open target; opens it again if another file is at the path.
    private func openTarget() throws(OutputFault) -> Target {
        if let target, target.isCurrent { return target }
        // The lock of the former file ends before another one is opened.
        closeTarget()
        let opened: Target =
            switch path.kind {
            case .file: .file(try LinesFile(path))
            case .pipe: .pipe(try openPipe())
            case .other: throw path.notAFile
            }
        target = opened
        return opened
    }

    /// Opens the pipe, and closes it when its reader leaves, so that the next reader gets no rest of a line.
    private func openPipe() throws(OutputFault) -> LinesPipe {
        let pipe = try LinesPipe(path)
        // Without a watch, the next write finds out that there is no reader.
        try? loop.watch(pipe.descriptor, for: []) { [weak self] _ in self?.assumeIsolated { $0.closeTarget() } }
        return pipe
    }

    private func append(_ text: [UInt8], to file: LinesFile) throws(OutputFault) {
        var file = file
        try file.updateSize()
        if let maximum = settings.maxSize, file.size > 0, file.size + Int64(text.count) > Int64(clamping: maximum) {
            try file.rotate(keep: settings.keep)
            file = try LinesFile(path)
            target = .file(file)
        }
        do throws(OutputFault) {
            try file.append(text, isSynced: settings.isSynced)
        } catch {
            // After a failed write or sync the next attempt reads the file's end again.
            target = nil
            throw error
        }
    }

    private func append(_ text: [UInt8], to pipe: LinesPipe) throws(OutputFault) {
        do throws(OutputFault) {
            try pipe.append(text)
        } catch {
            // A slow reader gets the rest of its line; without a reader the pipe is opened again.
            if !Task.isCancelled { closeTarget() }
            throw error
        }
    }
}
