import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let profileTest = CommandSpec(
        name: "profile test",
        summary: "run the tests of declarative profiles",
        positionals: [PositionalSpec(name: "PATH")],
        details: """
            PATH is a profile or a folder of profiles. Native profiles have their tests in their sources.
            """,
        exits: [.data: "a test fails, a profile is refused, or there is none", .inputOutput: "PATH cannot be read"],
        examples: ["gattherd profile test my-sensor.yaml"],
        run: { (arguments) throws(CommandFailure) in try ProfileTestCommand(arguments).run() }
    )
}

/// Runs the tests of a profile's file.
struct ProfileTestCommand {
    private let registry: ProfileRegistry

    init(_ arguments: Arguments) throws(CommandFailure) {
        do throws(ProfilePathError) {
            registry = try ProfileTools.load(arguments.positional(0) ?? "")
        } catch {
            throw CommandFailure(.inputOutput, "gattherd: \(error.description)")
        }
    }

    func run() throws(CommandFailure) {
        for refusal in registry.refusals { Terminal.printError("\(refusal)") }
        var (passed, failed) = (0, 0)
        for profile in registry.profiles {
            for result in ProfileTools.runVectors(of: profile) {
                if let problem = result.failure {
                    failed += 1
                    Terminal.printError("\(profile.origin):\(result.line):\(result.column): \(problem)")
                } else {
                    passed += 1
                }
            }
        }
        Terminal.say("\(passed) passed, \(failed) failed")
        guard failed == 0, registry.refusals.isEmpty else { throw CommandFailure(.data, nil) }
        guard !registry.profiles.isEmpty else { throw CommandFailure(.data, "gattherd: there is no profile in it") }
    }
}
