import GattherdGateway
import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let profileTest = CommandSpec(
        name: "profile test",
        summary: "run the tests of profiles",
        positionals: [PositionalSpec(name: "PATH")],
        details: """
            PATH is a profile or a folder of profiles. A native profile has its tests in its table. Profiles without tests are
            listed. A run without any test fails.
            """,
        exits: [
            .data: "a test fails, a profile is refused, or there is no profile or no test",
            .noInput: "PATH cannot be read",
        ],
        examples: ["gattherd profile test my-sensor.yaml", "gattherd profile test .build/release/libMySensor.so"],
        run: { (arguments) throws(CommandFailure) in try ProfileTestCommand(arguments).run() }
    )
}

/// Runs the tests of a profile's file.
struct ProfileTestCommand {
    private let path: String
    private let registry: ProfileRegistry

    init(_ arguments: Arguments) throws(CommandFailure) {
        path = arguments.positional(0) ?? ""
        do throws(ProfilePathError) {
            registry = try ProfileTools.load(path)
        } catch {
            throw CommandFailure(.noInput, "gattherd: \(error.path): \(error.reason)")
        }
    }

    func run() throws(CommandFailure) {
        for refusal in registry.refusals { Terminal.printError("\(refusal)") }
        let results = registry.profiles.map { ($0, TestOutcomes(of: $0)) }
        for (profile, outcomes) in results {
            if outcomes.count == 0 { Terminal.printError("\(profile.origin): \(profile.name) has no tests") }
            for failure in outcomes.failures { Terminal.printError(failure) }
        }
        let count = results.reduce(0) { $0 + $1.1.count }
        let failed = results.reduce(0) { $0 + $1.1.failures.count }
        Terminal.say("\(count - failed) passed, \(failed) failed")
        guard failed == 0, registry.refusals.isEmpty else { throw CommandFailure(.data, nil) }
        guard !registry.profiles.isEmpty else { throw CommandFailure(.data, "gattherd: \(path) contains no profile") }
        guard count > 0 else {
            throw CommandFailure(.data, "gattherd: \(path) contains no test; nothing was tested")
        }
    }
}

/// The tests of a profile's streams and controls.
private struct TestOutcomes {
    let count: Int
    /// The failures with their places.
    let failures: [String]

    init(of profile: any Profile) {
        let streams = ProfileTools.runVectors(of: profile).map { ($0.place, "stream '\($0.stream)'", $0.failure) }
        let controls = ProfileTools.runControlVectors(of: profile).map { test in
            (test.place, "control '\(test.control)'", test.failure.map { "\(test.control): \($0)" })
        }
        let all = streams + controls
        count = all.count
        failures = all.compactMap { place, subject, failure in
            failure.map { "\(profile.origin)\(Self.words(place, subject)): \($0)" }
        }
    }

    private static func words(_ place: VectorPlace, _ subject: String) -> String {
        switch place {
        case .line(let line, let column): ":\(line):\(column)"
        case .number(let number): ": test \(number) of \(subject)"
        }
    }
}

extension CommandSpec {
    static let profileCheck = CommandSpec(
        name: "profile check",
        summary: "check a profile, or a folder of profiles",
        positionals: [PositionalSpec(name: "PATH")],
        options: [.flag("json", "print a JSON array of errors")],
        details: """
            Prints each error with its line and column, the expected value and a suggestion, and models whose advertisements the
            profile would not decode. 'gattherd profile test' runs the tests.
            """,
        json: "As 'gattherd check --json' prints it.",
        exits: [.data: "something is wrong", .noInput: "PATH cannot be read"],
        examples: ["gattherd profile check my-sensor.yaml", "gattherd profile check /etc/gattherd/profiles --json"],
        run: { (arguments) throws(CommandFailure) in try ProfileCheckCommand(arguments).run() }
    )
}

/// Reads profiles as the daemon does, and prints their errors.
struct ProfileCheckCommand {
    private let path: String
    private let registry: ProfileRegistry
    private let isJSON: Bool

    init(_ arguments: Arguments) throws(CommandFailure) {
        path = arguments.positional(0) ?? ""
        isJSON = arguments.has("json")
        do throws(ProfilePathError) {
            registry = try ProfileTools.load(path)
        } catch {
            throw CommandFailure(.noInput, "gattherd: \(error.path): \(error.reason)")
        }
    }

    func run() throws(CommandFailure) {
        let findings = registry.refusals.map { CheckFinding($0) }
        if isJSON {
            Terminal.say(CheckFinding.json(findings))
        } else {
            for finding in findings { Terminal.printError(finding.description) }
            for profile in registry.profiles {
                Terminal.say(Self.summaryLine(profile))
                for model in ProfileTools.undecodedModels(of: profile) {
                    let advice = "compare its 'begins', 'length' and 'name' with those of 'advertisement'"
                    Terminal.printError("\(profile.origin): \(model) would be recognised, but not decoded; \(advice)")
                }
            }
        }
        guard findings.isEmpty else { throw CommandFailure(.data, nil) }
        guard !registry.profiles.isEmpty || isJSON else {
            throw CommandFailure(.data, "gattherd: \(path) contains no profile")
        }
    }

    private static func summaryLine(_ profile: any Profile) -> String {
        let counts = [
            (profile.streams.count, "stream"), (profile.controls.count, "control"),
            (profile.tasks.count, "task"), (TestOutcomes(of: profile).count, "test"),
        ]
        let words = counts.filter { $0.0 > 0 }.map { "\($0) \($1)\($0 == 1 ? "" : "s")" }.joined(separator: ", ")
        return "\(profile.origin): good: \(profile.name), \(words)"
    }
}
