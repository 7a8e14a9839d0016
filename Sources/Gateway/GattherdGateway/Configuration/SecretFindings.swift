package import GattherdConfig
import GattherdDaemon
import GattherdDelivery
import GattherdHTTP
import GattherdLog
import GattherdMQTT
import GattherdSparkplug
import GattherdSync
import Glibc

extension Configuration {
    /// The findings about the files that the sections of the outputs and `http` name, and about passkeys.
    package var secretFindings: [ConfigError] {
        (mqtt?.findings ?? []) + outputFindings + (http?.findings ?? []) + devices.flatMap(\.passkeyFindings)
    }
}

extension DeviceSettings {
    /// The warnings about the file of the passkey; each pairing reads it, so it may be written later.
    fileprivate var passkeyFindings: [ConfigError] {
        guard let pinFile else { return [] }
        let exposure = SecretFile(path: pinFile.value).exposure.map { ConfigError.exposed(pinFile, $0) }
        do throws(PinFileError) {
            _ = try PinFile.read(pinFile.value)
            return [exposure].compactMap(\.self)
        } catch {
            let problem = ConfigError(.file(error.description), about: pinFile, severity: .warning)
            return [problem, exposure].compactMap(\.self)
        }
    }
}

extension NamedFile {
    /// An error about a file that cannot be read, or a warning about a secret that others can read.
    var finding: ConfigError? {
        let file = SecretFile(path: path.value)
        switch use {
        case .secret(let noun, _):
            if let reason = file.unreadable(noun) { return ConfigError(.file(reason), about: path) }
            if let reason = file.blank(noun) { return ConfigError(.file(reason), about: path, severity: .warning) }
            return file.exposure.map { .exposed(path, $0) }
        case .key: return unreadable ?? file.exposure.map { .exposed(path, $0) }
        case .certificate: return unreadable
        case .destination: return nil
        }
    }

    private var unreadable: ConfigError? {
        guard unsafe access(path.value, R_OK) != 0 else { return nil }
        let reason = SystemError.current.description
        return ConfigError(.file("'\(path.value)' cannot be read: \(reason)"), about: path)
    }
}

extension HTTPSettings {
    /// The findings about the token file.
    package var findings: [ConfigError] {
        guard let tokenFile else { return [] }
        let file = SecretFile(path: tokenFile.value)
        let advice = "run: (umask 027; openssl rand -hex 32 > '\(file.path)'; chgrp gattherd '\(file.path)')"
        if let reason = file.unreadable("token", missing: "correct the path, or \(advice)") {
            return [ConfigError(.file(reason), about: tokenFile)]
        }
        guard file.token != nil else {
            let rule = "the token must be \(AccessToken.shortest) or more characters of ASCII, without spaces"
            return [ConfigError(.file("\(rule); \(advice)"), about: tokenFile)]
        }
        return file.exposure.map { [.exposed(tokenFile, $0)] } ?? []
    }

    /// Logs warnings about the files of the section.
    ///
    /// - Throws: ``GatewayError`` if one cannot be used.
    func check(_ log: Log) throws(GatewayError) {
        for finding in findings {
            guard finding.severity == .warning else { throw GatewayError(ConfigErrors([finding])) }
            log(.warning, "a file that the configuration names has a problem", [LogField("advice", finding.problem)])
        }
    }
}

extension HTTPSettings {
    /// The token that its file has now.
    var token: AccessToken? { tokenFile.flatMap { SecretFile(path: $0.value).token } }
}

extension SecretFile {
    fileprivate var token: AccessToken? { firstLine.flatMap { AccessToken($0) } }
}

extension MQTTSettings {
    /// The findings about the certificates and the password file.
    package var findings: [ConfigError] {
        (broker.usesTLS ? tls.findings : []) + (passwordFile.map { passwordFindings($0) } ?? [])
            + (homeAssistant.statistics?.findings ?? [])
    }

    private func passwordFindings(_ file: Located<String>) -> [ConfigError] {
        let secret = SecretFile(path: file.value)
        if let reason = secret.unreadable("password") { return [ConfigError(.file(reason), about: file)] }
        let blank = secret.blank("password").map { ConfigError(.file($0), about: file, severity: .warning) }
        return [blank, secret.exposure.map { .exposed(file, $0) }].compactMap(\.self)
    }
}

extension StatisticsSettings {
    /// The findings about the files, and a warning about a token that crosses a network without encryption.
    fileprivate var findings: [ConfigError] {
        let found = files.compactMap(\.finding)
        guard url.value.isExposed else { return found }
        let text = "the token is sent to \(url.value.host) without encryption; use https:// if you can"
        return found + [ConfigError(.exposedSecret(text), about: tokenFile, severity: .warning)]
    }
}

extension MQTTSettings.TLS {
    fileprivate var findings: [ConfigError] {
        do throws(TLSFileError) {
            try TLSSettings(self).check()
        } catch {
            return [ConfigError(.file(error.description), about: file(error.role))]
        }
        guard let key, let exposure = SecretFile(path: key.value).exposure else { return [] }
        return [.exposed(key, exposure)]
    }

    private func file(_ role: TLSFileError.Role?) -> Located<String>? {
        switch role {
        case .ca: ca
        case .certificate: certificate
        case .key: key
        case nil: nil
        }
    }
}

extension ConfigError {
    package init(_ problem: ConfigProblem, about file: Located<String>?, severity: Severity = .error) {
        if let place = file?.place {
            self.init(problem, at: place, severity: severity)
        } else {
            self.init(problem, file: file?.value ?? "mqtt.tls", severity: severity)
        }
    }

    package static func exposed(_ file: Located<String>, _ advice: String) -> ConfigError {
        ConfigError(.exposedSecret(advice), about: file, severity: .warning)
    }
}
