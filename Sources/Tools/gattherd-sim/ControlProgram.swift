import GattherdDBus
import GattherdGATT
import GattherdSimulator
import GattherdSync
import Glibc

/// `gattherd-sim ctl`.
struct ControlProgram {
    /// The limit of the simulator's reply: it needs milliseconds, and a test suite on a slow machine seconds.
    private static let replyLimit = Duration.seconds(10)

    private let options: Options

    init(_ options: Options) {
        self.options = options
    }

    func run() async throws(ProgramFailure) {
        guard let verb = options.words.first else { throw .usage("missing order after ctl") }
        guard let address = Options.address(options.bus ?? "system") else {
            throw .usage("--bus private has no known address; use the address that run printed")
        }
        let call = try OrderWords(verb, Array(options.words.dropFirst())).call()
        let loop = EventLoop(name: "ctl")
        defer { loop.stop() }
        do throws(DBusError) {
            let connection = try await DBusConnection.open(address, on: loop)
            let answer = try await connection.call(
                ControlInterface.busName,
                ControlInterface.path,
                ControlInterface.name,
                call.member,
                call.arguments,
                timeout: Self.replyLimit
            )
            await connection.close()
            for peripheral in answer.first?.elements ?? [] { write(Self.line(peripheral), to: STDOUT_FILENO) }
        } catch {
            let isRefused = error.name.hasPrefix(ControlInterface.name)
            throw ProgramFailure(message: error.message, code: isRefused ? EX_DATAERR : EX_UNAVAILABLE)
        }
    }

    private static func line(_ peripheral: DBusValue) -> String {
        func isTrue(_ key: String) -> Bool { peripheral[key]?.bool ?? false }
        let silence = peripheral["silence"]?.string ?? "off"
        let state =
            isTrue("resolved")
            ? "ready" : isTrue("connected") ? "connected" : isTrue("present") ? "advertising" : "away"
        let columns = [
            peripheral["name"]?.string ?? "", peripheral["address"]?.string ?? "", state,
            peripheral["adapter"]?.string ?? "", "subscriptions \(peripheral["subscriptions"]?.int ?? 0)",
            "notifications \(peripheral["notifications"]?.int ?? 0)", silence == "off" ? "" : "silent: \(silence)",
        ]
        return columns.filter { !$0.isEmpty }.joined(separator: "  ") + "\n"
    }
}

/// An order on the command line.
struct OrderWords {
    private let verb: String
    private let words: [String]

    init(_ verb: String, _ words: [String]) {
        self.verb = verb
        self.words = words
    }

    /// The D-Bus method and its arguments.
    func call() throws(ProgramFailure) -> (member: String, arguments: [DBusValue]) {
        switch verb {
        case "status": ("Status", try strings(0...0))
        case "drop": ("Drop", try strings(1...1))
        case "vanish": ("Vanish", try strings(1...1))
        case "keep-link": ("KeepLink", try strings(1...1))
        case "appear": ("Appear", try strings(1...1))
        case "slow": try slow()
        case "refuse": ("Refuse", try counted())
        case "burst": ("Burst", try counted())
        case "advertise": ("Advertise", try switched())
        case "hang": ("Hang", try hang())
        case "forget": ("Forget", try strings(1...1))
        case "silence": ("Silence", try strings(1...2) + (words.count == 1 ? [.string("notifications")] : []))
        case "fail-next": try failNext()
        case "power": ("SetPowered", try switched())
        case "unplug": ("Unplug", try strings(1...1))
        case "plug": ("Plug", try strings(1...1))
        case "restart-daemon": try restartDaemon()
        case "notify": try notify()
        case "rate": try rate()
        case "set-clock": try setClock()
        case "reset-records": ("ResetRecords", try strings(1...1))
        case "change-services": try services("ChangeServices")
        case "hide-services": try services("HideServices")
        default: throw .usage("unknown order '\(verb)'")
        }
    }

    private func strings(_ counts: ClosedRange<Int>) throws(ProgramFailure) -> [DBusValue] {
        guard counts.contains(words.count) else {
            let count = counts.count == 1 ? "\(counts.upperBound)" : "\(counts.lowerBound) to \(counts.upperBound)"
            throw .usage("\(verb) takes \(count) word\(counts.upperBound == 1 ? "" : "s")")
        }
        return words.map(DBusValue.string)
    }

    private func failNext() throws(ProgramFailure) -> (String, [DBusValue]) {
        let given = try strings(2...4)
        let times = words.count > 3 ? UInt32(words[3]) : 1
        guard let times, times > 0 else { throw .usage("'\(words[3])' is not a number of times") }
        return ("FailNext", given.prefix(2) + [.string(words.count > 2 ? words[2] : ""), .uint32(times)])
    }

    /// Arguments of a name and on or off.
    private func switched() throws(ProgramFailure) -> [DBusValue] {
        let given = try strings(2...2)
        guard let isOn = ScenarioValue.boolean(words[1]) else { throw .usage("\(verb) takes a name, and on or off") }
        return [given[0], .boolean(isOn)]
    }

    /// Arguments of an adapter, by default the first one, and on or off.
    private func hang() throws(ProgramFailure) -> [DBusValue] {
        words.count == 1 ? try OrderWords(verb, [AdapterSpec().name] + words).switched() : try switched()
    }

    /// Arguments of a name and a number of times, by default 1.
    private func counted() throws(ProgramFailure) -> [DBusValue] {
        let given = try strings(1...2)
        let count = words.count > 1 ? UInt32(words[1]) : 1
        guard let count else { throw .usage("'\(words[1])' is not a whole number") }
        return [given[0], .uint32(count)]
    }

    /// Arguments of a name and a duration or a number of seconds.
    private func slow() throws(ProgramFailure) -> (String, [DBusValue]) {
        let given = try strings(2...2)
        guard let latency = ScenarioValue.duration(words[1]) ?? ScenarioValue.duration(words[1] + "s") else {
            throw .usage("'\(words[1])' is not a number of seconds")
        }
        return ("Slow", [given[0], .uint32(UInt32(clamping: Int64(latency / .milliseconds(1))))])
    }

    private func restartDaemon() throws(ProgramFailure) -> (String, [DBusValue]) {
        _ = try strings(0...2)
        let downtime = ScenarioValue.duration(words.first ?? "2s")
        guard let downtime else { throw .usage("'\(words[0])' is not \(ScenarioValue.durationWords)") }
        guard words.count < 2 || words[1] == "graceful" else {
            throw .usage("'\(words[1])' is unknown: write 'graceful' or nothing after the time")
        }
        let milliseconds = UInt32(clamping: Int64(downtime / .milliseconds(1)))
        return ("RestartDaemon", [.boolean(words.count == 2), .uint32(milliseconds)])
    }

    private func notify() throws(ProgramFailure) -> (String, [DBusValue]) {
        let given = try strings(3...3)
        guard let octets = ScenarioValue.octets(words[2]) else {
            throw .usage("'\(words[2])' is not \(ScenarioValue.octetsWords)")
        }
        return ("Notify", given.prefix(2) + [.bytes(octets)])
    }

    private func rate() throws(ProgramFailure) -> (String, [DBusValue]) {
        let given = try strings(2...2)
        guard let rate = ScenarioValue.rate(words[1]) else {
            throw .usage("'\(words[1])' is not \(ScenarioValue.rateWords)")
        }
        return ("SetRate", [given[0], .double(rate)])
    }

    private func setClock() throws(ProgramFailure) -> (String, [DBusValue]) {
        let given = try strings(2...2)
        guard let error = Double(words[1]), error.isFinite else {
            throw .usage("'\(words[1])' is not a number of seconds by which the clock is ahead")
        }
        return ("SetClock", [given[0], .double(error)])
    }

    private func services(_ method: String) throws(ProgramFailure) -> (String, [DBusValue]) {
        let given = try strings(1...64)
        return (method, [given[0], .strings(Array(words.dropFirst()))])
    }
}
