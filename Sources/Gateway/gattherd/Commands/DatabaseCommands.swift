import GattherdGateway
import GattherdHistory
import GattherdModel
import GattherdSync

extension CommandSpec {
    static let databaseCheck = CommandSpec(
        name: "db check",
        summary: "check the history for damage and count its rows; also while the daemon runs",
        options: DatabaseFile.options + [
            .flag("json", "print one JSON object"),
            .flag("repair", "recompute summaries that differ from the samples; stop the daemon first"),
        ],
        details: """
            Reads the whole file: its pages and its rows. Compares the summaries of hours and minutes with the minutes and
            samples that are still stored. Changes nothing without --repair.
            """,
        json: """
            {"path", "findings": [text], "size", "free", "samples", "minutes", "hours", "events", "rejects", "journal",
            "seq", "oldest", "newest"}

            "findings" is empty if the file is good. Sizes are in bytes, times are RFC 3339 or null. Values that could not be
            counted are left out.
            """,
        exits: [
            .data: "the file is damaged", .inputOutput: "the disk fails", .unavailable: "there is no such history",
        ],
        examples: ["gattherd db check", "gattherd db check --database /mnt/history-2026-11-01.db"],
        run: { (arguments) throws(CommandFailure) in
            let commands = try DatabaseCommands(arguments)
            if arguments.has("repair") { try commands.repair() }
            try commands.check(arguments.has("json"))
        }
    )

    static let databaseCompact = CommandSpec(
        name: "db compact",
        summary: "shrink the history's file; also while the daemon runs",
        options: DatabaseFile.options,
        details: """
            While the daemon runs, free space is released step by step. Otherwise the file is rewritten, which temporarily
            needs the same space again.
            """,
        exits: [
            .data: "the file is damaged", .inputOutput: "the disk is full or fails",
            .unavailable: "there is no history",
        ],
        examples: ["gattherd db compact"],
        run: { (arguments) throws(CommandFailure) in try DatabaseCommands(arguments).compact() }
    )

    static let databaseBackup = CommandSpec(
        name: "db backup",
        summary: "copy the history as it is now; also while the daemon runs",
        positionals: [PositionalSpec(name: "FILE")],
        options: DatabaseFile.options,
        details: "FILE must not exist. It is complete and on the disk when the command has ended.",
        exits: [
            .data: "the history is damaged", .unavailable: "there is no history",
            .cannotCreate: "FILE already exists, or cannot be created", .inputOutput: "the disk is full or fails",
        ],
        examples: ["gattherd db backup /mnt/history-$(date +%F).db"],
        run: { (arguments) throws(CommandFailure) in
            try DatabaseCommands(arguments).backUp(arguments.positional(0) ?? "")
        }
    )
}

extension CommandSpec {
    static let databaseRestore = CommandSpec(
        name: "db restore",
        summary: "replace the history by a backup; stop the daemon first",
        positionals: [PositionalSpec(name: "FILE")],
        options: DatabaseFile.options,
        details: """
            FILE is checked and copied, not changed. The replaced history stays beside the new one, as
            gattherd.db.replaced-DATE. The file gets the owner and permissions that the daemon needs. Sequence numbers
            are not reused. Readings that waited for delivery at the time of the backup are delivered again.
            """,
        exits: [
            .data: "FILE is damaged, or no history", .unavailable: "the daemon uses the history; stop it first",
            .cannotCreate: "the history cannot be replaced by this user",
            .inputOutput: "the disk is full or fails",
        ],
        examples: ["sudo systemctl stop gattherd && sudo gattherd db restore /mnt/history-2026-11-01.db"],
        run: { (arguments) throws(CommandFailure) in
            try DatabaseCommands(arguments).restore(arguments.positional(0) ?? "")
        }
    )
}

/// Checks, compacts, copies and restores the file of history.
struct DatabaseCommands {
    fileprivate let path: String
    /// The owner of the folder of history: root changes files there with this account's rights, so that it follows no
    /// link into folders of others.
    fileprivate let account: FileAccount

    init(_ arguments: Arguments) throws(CommandFailure) {
        path = try DatabaseFile.path(arguments)
        account = FileAccount.owner(of: path.parentFolder) ?? .current
    }

    func check(_ isJSON: Bool) throws(CommandFailure) {
        do throws(StoreFault) {
            let reader = try HistoryReader(path: path)
            let findings = try reader.check()
            let report = DatabaseReport(path: path, findings: findings, contents: try? reader.contents())
            Terminal.say(isJSON ? report.json : report.text)
            guard findings.isEmpty else { throw StoreFault("\(path): the file is damaged", .damaged) }
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Recomputes wrong summaries and prints them on standard error.
    func repair() throws(CommandFailure) {
        do throws(StoreFault) {
            let differences = try account.run { () throws(StoreFault) in try SummaryRepair.run(path: path) }
            for difference in differences { Terminal.printError("repaired: \(difference)") }
        } catch {
            throw CommandFailure(error)
        }
    }

    func compact() throws(CommandFailure) {
        do throws(StoreFault) {
            let compaction = try account.run { () throws(StoreFault) in try Compaction(path: path) }
            let sizes = "\(mebibytes(compaction.before)) before, \(mebibytes(compaction.after)) now"
            Terminal.say("\(path): \(sizes)\(compaction.isOnline ? "; the daemon went on meanwhile" : "")")
        } catch {
            throw CommandFailure(error)
        }
    }

    func backUp(_ target: String) throws(CommandFailure) {
        let reader: HistoryReader
        do throws(StoreFault) { reader = try HistoryReader(path: path) } catch { throw CommandFailure(error) }
        do throws(StoreFault) {
            try reader.backUp(to: target)
            let contents = try HistoryReader(path: target).contents()
            Terminal.say("\(target): \(contents.samples) samples, \(mebibytes(contents.size))")
        } catch {
            throw CommandFailure(error, refused: .cannotCreate)
        }
    }
}

extension DatabaseCommands {
    func restore(_ backup: String) throws(CommandFailure) {
        do throws(StoreFault) {
            let source = try RestoreSource(backup)
            let restore = try account.run { () throws(StoreFault) in
                try Restore(source, to: path, at: SystemClock.now)
            }
            Terminal.say("\(path): \(restore.samples) samples, \(mebibytes(restore.size)); start the daemon now")
            if let replaced = restore.replaced { Terminal.say("\(replaced): the replaced history") }
            guard restore.skipsNumbers else { return }
            Terminal.printError(
                "gattherd: \(path)-seq was missing: which numbers were given since the backup is not known, "
                    + "so the next ones begin far above"
            )
        } catch {
            throw CommandFailure(error, refused: .cannotCreate)
        }
    }
}

/// The result of `db check`.
struct DatabaseReport {
    let path: String
    let findings: [String]
    /// The counts; `nil` if they could not be read.
    let contents: HistoryContents?

    var text: String {
        var lines = findings.isEmpty ? ["\(path): good"] : findings.map { "\(path): \($0)" }
        guard let contents else { return lines.joined(separator: "\n") }
        let span = contents.span.map { ", \($0.lowerBound.rfc3339) to \($0.upperBound.rfc3339)" } ?? ""
        lines += [
            "  size      \(mebibytes(contents.size)), \(mebibytes(contents.free)) of it free",
            "  samples   \(contents.samples)\(span)",
            "  minutes   \(contents.minutes)",
            "  hours     \(contents.hours)",
            "  events    \(contents.events)",
            "  rejects   \(contents.rejects)",
            "  journal   \(contents.logged) readings",
        ]
        return lines.joined(separator: "\n")
    }

    var json: String {
        JSONWriter.text { writer in
            writer.beginObject()
            writer.key("path")
            writer.string(path)
            writer.key("findings")
            writer.array(findings) { $0.string($1) }
            if let contents { write(contents, to: &writer) }
            writer.endObject()
        }
    }

    private func write(_ contents: HistoryContents, to writer: inout JSONWriter) {
        let numbers: KeyValuePairs = [
            "size": Int(contents.size), "free": Int(contents.free), "samples": contents.samples,
            "minutes": contents.minutes, "hours": contents.hours, "events": contents.events,
            "rejects": contents.rejects, "journal": contents.logged, "seq": Int(contents.mark),
        ]
        for (key, number) in numbers {
            writer.key(key)
            writer.integer(number)
        }
        for (key, time) in [("oldest", contents.span?.lowerBound), ("newest", contents.span?.upperBound)] {
            writer.key(key)
            writer.optional(time) { $0.timestamp($1) }
        }
    }
}

/// Returns a number of bytes in MiB with one decimal, or in GiB from 10 GiB on.
func mebibytes(_ bytes: Int64) -> String {
    guard bytes < 10 << 30 else { return "\(bytes >> 30) GiB" }
    return "\((Double(bytes) / Double(1 << 20) * 10).rounded() / 10) MiB"
}

extension CommandFailure {
    /// Creates the failure; its exit code distinguishes a damaged file from a failing disk.
    init(_ fault: StoreFault, refused: Code = .unavailable) {
        let code: Code =
            switch fault.kind {
            case .damaged: .data
            case .full, .disk: .inputOutput
            case .busy, .inUse: .unavailable
            case .refused: refused
            }
        self.init(code, "gattherd: \(fault.detail)")
    }
}
