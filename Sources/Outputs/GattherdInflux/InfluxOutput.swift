package import GattherdConfig
package import GattherdModel
package import GattherdOutputs
import Glibc

/// The output `influx`.
package enum InfluxOutput: OutputKind {
    package static let section = "influx"

    package static func read(_ section: SectionReader, _ environment: OutputEnvironment) -> InfluxConfiguration? {
        InfluxReader(environment: environment).configuration(section)
    }

    package static func make(
        _ configuration: InfluxConfiguration,
        _ context: OutputContext
    ) throws(OutputError) -> any Output {
        let read = context.readSecret
        let credentials = try configuration.credentials?.read(read)
        let settings = configuration.settings(gateway: context.gateway, credentials)
        let sink = InfluxSink(settings) {
            do throws(OutputError) { return try configuration.credentials?.read(read) } catch { return nil }
        }
        var options = BatchOptions()
        options.entries = configuration.batchEntries
        options.interval = configuration.batchInterval
        return BatchOutput(
            context,
            target: "\(configuration.url.value)",
            sink: sink,
            options: options
        )
    }

    /// A file that cannot be read is an error; a secret that others can read is a warning.
    package static func findings(_ configuration: InfluxConfiguration) -> [ConfigError] {
        let (url, tls) = (configuration.url, configuration.tls)
        let files = url.value.usesTLS ? [tls.ca, tls.certificate, tls.key] : []
        let secrets = [configuration.credentials?.file, url.value.usesTLS ? tls.key : nil]
        let errors = (files + [configuration.credentials?.file]).compactMap { $0.flatMap { unreadable($0) } }
        return errors + secrets.compactMap { $0.flatMap { exposed($0) } } + exposure(configuration)
    }

    private static func exposure(_ configuration: InfluxConfiguration) -> [ConfigError] {
        let url = configuration.url
        guard configuration.credentials != nil, !url.value.usesTLS, !url.value.isLoopback, let place = url.place else {
            return []
        }
        let text = "the token or password is sent to \(url.value.host) without encryption; use https:// if you can"
        return [ConfigError(.exposedSecret(text), at: place, severity: .warning)]
    }

    private static func unreadable(_ file: Located<String>) -> ConfigError? {
        guard unsafe access(file.value, R_OK) != 0, let place = file.place else { return nil }
        let reason = unsafe String(cString: strerror(errno))
        return ConfigError(.file("'\(file.value)' cannot be read: \(reason)"), at: place)
    }

    private static func exposed(_ file: Located<String>) -> ConfigError? {
        var status = stat()
        guard unsafe stat(file.value, &status) == 0, status.st_mode & S_IROTH != 0, let place = file.place else {
            return nil
        }
        let advice = "every user of this host can read '\(file.value)'; run: chmod o-rwx '\(file.value)'"
        return ConfigError(.exposedSecret(advice), at: place, severity: .warning)
    }
}

extension InfluxConfiguration.Credentials {
    fileprivate var file: Located<String> {
        switch self {
        case .token(let file), .password(_, let file): file
        }
    }

    /// Reads the file; blocks.
    fileprivate func read(_ read: OutputContext.SecretReader) throws(OutputError) -> InfluxCredentials {
        switch self {
        case .token(let file): return .token(try secret(in: file, "token", read))
        case .password(let user, let file): return .password(user: user, try secret(in: file, "password", read))
        }
    }

    private func secret(
        in file: Located<String>,
        _ noun: String,
        _ read: OutputContext.SecretReader
    ) throws(OutputError) -> String {
        var text = try read(file.value, noun)
        if text.hasSuffix("\r") { text.removeLast() }
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw OutputError("'\(file.value)' has no \(noun); write it into its first line")
        }
        return text
    }
}
