import GattherdGateway
import GattherdModel

extension CommandSpec {
    static let doctor = CommandSpec(
        name: "doctor",
        summary: "check this host for problems, and name the remedies",
        options: [ConfigurationFile.option, .flag("json", "print a JSON array")],
        details: """
            Checks the configuration and the permissions of its files, the version of BlueZ, rfkill, the bus and its
            policy, bluetoothd and its adapters, its service, the clock, the disk and its file system, the profiles and
            their permissions, the broker with TLS, the daemon, and its outputs with their gaps. It changes nothing; it
            connects to the broker with a separate client id. Each problem comes with a remedy. Run it as the daemon's user
            to check that user's rights.
            """,
        json: """
            [{"check", "severity", "finding", "remedy"}]

            "check" is config, container, user, bluez, rfkill, bus, policy, bluetoothd, adapter, service, clock,
            history, filesystem, disk, profiles, broker, daemon, links, output or decoding; "severity" is good, note,
            warning or error; "remedy" is null if none is needed. The texts are for people and may change.
            """,
        exits: [.unavailable: "there is an error, not in the configuration"],
        examples: [
            "sudo -u gattherd gattherd doctor", "gattherd doctor --json | jq '.[] | select(.severity == \"error\")'",
        ],
        run: { (arguments) async throws(CommandFailure) in try await DoctorCommand(arguments).run() }
    )
}

/// Prints the findings of the doctor, each as soon as it is known.
struct DoctorCommand {
    private let doctor: Doctor
    private let isJSON: Bool

    init(_ arguments: Arguments) {
        doctor = Doctor(ConfigurationFile(arguments))
        isJSON = arguments.has("json")
    }

    func run() async throws(CommandFailure) {
        var all: [DoctorFinding] = []
        await doctor.examine { findings in
            all += findings
            guard !isJSON else { return }
            for finding in findings { Terminal.show(finding.line(hasColour: Terminal.hasColour)) }
        }
        if isJSON { Terminal.say(json(all)) }
        let errors = all.filter { $0.severity == .error }
        guard !errors.isEmpty else { return }
        throw CommandFailure(errors.contains { $0.check == "config" } ? .configuration : .unavailable, nil)
    }

    private func json(_ findings: [DoctorFinding]) -> String {
        JSONWriter.text { writer in
            writer.array(findings) { $1.writeJSON(to: &$0) }
        }
    }
}
