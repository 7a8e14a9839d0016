package import GattherdConfig
import GattherdInflux
import GattherdLines
package import GattherdLog
package import GattherdModel
package import GattherdOutputs
import GattherdPostgres
import GattherdSparkplug
import GattherdSync

/// The outputs that gattherd has, one line for each; MQTT is apart, because it also carries controls and states.
package enum OutputRegistry {
    package static let definitions: [any OutputDefinition.Type] = [
        LinesOutput.self, InfluxOutput.self, SparkplugOutput.self, PostgresOutput.self,
    ]
}

extension Configuration {
    /// The properties of the journal's consumers, one for each output.
    package var consumers: [JournalConsumerOptions] {
        let mqtt = mqtt.map { JournalConsumerOptions(name: "mqtt", longestBacklog: $0.longestBacklog) }
        return [mqtt].compactMap(\.self) + configuredOutputs.map(\.consumer)
    }

    /// The findings about the files that the sections of the outputs name, MQTT excepted.
    package var outputFindings: [ConfigError] { outputs.flatMap { findings($0) } }

    /// The files that the sections of the outputs name.
    package var outputFiles: [(section: String, file: NamedFile)] {
        let others = outputs.flatMap { section in section.files.map { (section.name, $0) } }
        return (mqtt?.files ?? []).map { ("mqtt", $0) } + others
    }

    /// Makes the outputs, MQTT excepted.
    ///
    /// - Parameters:
    ///   - consumer: Returns the journal with the cursor of an output.
    ///   - log: The log for people.
    ///   - record: Records events of the kind `output`.
    ///   - devices: Returns the devices in history, or `nil` if they cannot be read now.
    ///   - commands: The control callbacks, for outputs that accept commands.
    /// - Returns: The outputs in the order of their registration; none is connected yet.
    /// - Throws: ``GatewayError`` if a file that a section names cannot be used.
    package func makeOutputs(
        consumer: (JournalConsumerOptions) -> any JournalConsumer,
        log: Log,
        record: @escaping OutputContext.EventHandler,
        devices: @escaping @Sendable () async -> [SeenDevice]? = { nil },
        commands: OutputCommands = OutputCommands()
    ) throws(GatewayError) -> [any Output] {
        var outputs: [any Output] = []
        for finding in outputFindings where finding.severity == .warning {
            log(.warning, "a file that the configuration names has a problem", [LogField("advice", finding.problem)])
        }
        for output in configuredOutputs {
            var context = OutputContext(
                name: output.consumer.name,
                kind: output.kind,
                gateway: gateway,
                journal: consumer(output.consumer),
                log: log,
                record: record,
                readSecret: { (path, noun) throws(OutputError) in try SecretFile(path: path).required(noun) }
            )
            context.stateFolder = history.path.value.parentFolder
            (context.version, context.devices) = (GattherdVersion.current, devices)
            (context.setControl, context.permissions) = (commands.setControl, commands.permissions)
            context.isPublisher = commands.isPublisher
            do throws(OutputError) {
                outputs.append(try output.make(context))
            } catch {
                throw GatewayError(.configuration, "gattherd: the output '\(output.consumer.name)': \(error)")
            }
        }
        return outputs
    }

    /// The leases in the database of the section `postgres`, the first if there are several; `nil` without one.
    var leases: PostgresLeases? {
        let settings = outputs.lazy.compactMap { $0.settings(of: PostgresOutput.self) }.first
        return settings?.leases(ofGateway: gateway) { (path, noun) throws(OutputError) in
            try SecretFile(path: path).required(noun)
        }
    }

    private var configuredOutputs: [ConfiguredOutput] {
        outputs.compactMap { configured($0) }
    }

    private func configured(_ section: OutputSection) -> ConfiguredOutput? {
        OutputRegistry.definitions.lazy.compactMap { ConfiguredOutput(section, $0) }.first
    }

    /// Returns the findings about the files, and the output's own if every file is readable.
    private func findings(_ section: OutputSection) -> [ConfigError] {
        let findings = section.files.compactMap(\.finding)
        if findings.contains(where: { $0.severity == .error }) { return findings }
        return findings + (configured(section)?.findings ?? [])
    }
}

/// The means of outputs that accept commands.
package struct OutputCommands: Sendable {
    package var setControl: @Sendable (ControlRequest) async -> Result<ControlValue, ControlError> = { request in
        .failure(.notReady(device: request.device))
    }
    package var permissions: @Sendable () -> ControlPermissions = { ControlPermissions() }
    /// Returns true if this gateway publishes the readings of an advertising device at a time; `nil` for always.
    package var isPublisher: (@Sendable (_ device: String, Timestamp) -> Bool)?

    package init() {}
}

extension SecretFile {
    /// Returns the first line.
    ///
    /// - Throws: ``OutputError`` with the remedy if it cannot be read; `noun` is its content.
    fileprivate func required(_ noun: String) throws(OutputError) -> String {
        if let firstLine { return firstLine }
        throw OutputError(unreadable(noun) ?? "no \(noun) can be read from '\(path)'; try again")
    }
}
