//! TLS: rustls with ring, which starts in milliseconds (docs/decisions/0020).

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::faults::UntrustedFile;
use super::socket::TimedStream;

pub(super) type Stream = StreamOwned<ClientConnection, TimedStream>;

/// Starts TLS on a stream. The first bytes are exchanged when the first request is sent.
pub(super) fn connect(stream: TimedStream, host: &str, certificates: Option<&Path>) -> io::Result<Stream> {
    start(stream, host, config(certificates)?)
}

/// Whether the server at the other end of a stream uses TLS. No certificate is trusted, so no connection comes of it.
pub(super) fn is_used(stream: TimedStream, host: &str) -> bool {
    let shaken = with_roots(RootCertStore::empty())
        .and_then(|config| start(stream, host, config))
        .and_then(|mut stream| stream.conn.complete_io(&mut stream.sock));
    let error = shaken.err();
    let tls =
        error.as_ref().and_then(io::Error::get_ref).and_then(|source| source.downcast_ref::<rustls::Error>());
    tls.is_some_and(|error| !matches!(error, rustls::Error::InvalidMessage(_)))
}

fn start(stream: TimedStream, host: &str, config: Arc<ClientConfig>) -> io::Result<Stream> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
    let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// How long a configuration is used, so that a process that runs for long notices new certificates.
const LIFETIME: Duration = Duration::from_mins(10);

/// A configuration, the file of its certificates, and when it was read.
struct Known {
    config: Arc<ClientConfig>,
    file: Option<PathBuf>,
    read_at: Instant,
}

/// The configuration for these certificates. To read those of the system takes milliseconds, so it is kept.
fn config(file: Option<&Path>) -> io::Result<Arc<ClientConfig>> {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|known| known.read_at.elapsed() < LIFETIME);
    if let Some(known) = known.iter().find(|known| known.file.as_deref() == file) {
        return Ok(Arc::clone(&known.config));
    }
    let config = with_roots(roots(file)?)?;
    known.push(Known {
        config: Arc::clone(&config),
        file: file.map(Path::to_owned),
        read_at: Instant::now(),
    });
    Ok(config)
}

fn with_roots(roots: RootCertStore) -> io::Result<Arc<ClientConfig>> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The certificates to trust.
fn roots(file: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let failed =
                |error| untrusted(format!("the certificates in {} cannot be read: {error}", file.display()));
            for certificate in CertificateDer::pem_file_iter(file).map_err(failed)? {
                let added = roots.add(certificate.map_err(failed)?);
                added.map_err(|error| untrusted(format!("{}: {error}", file.display())))?;
            }
        }
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    if roots.is_empty() {
        return Err(untrusted("there are no certificates to trust".to_owned()));
    }
    Ok(roots)
}

fn untrusted(reason: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, UntrustedFile(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIURtDDivaOnrAzo19upvWLi1ZijCEwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMTcxOTA0NThaGA8yMTI2MTAyNDE5MDQ1
OFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKSi
8ndGBcYRPBhDT8TOdKECFQuqbr7Qp3xdUfhlwD+G2yc/XEZ0Dacwpjbwk9F3elz6
NvLW4R2/DdtwNfMB2M6jUzBRMB0GA1UdDgQWBBQjLAwnmYEpYzULM7gvJ0g/dVbZ
OTAfBgNVHSMEGDAWgBQjLAwnmYEpYzULM7gvJ0g/dVbZOTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIEAqafLC31DR9+86Pmk9RsjgwiAwaJ6FOhTi
sCoQR3vhAiEAnSORW1zsxbUNquurjl1xShb37Yfosky4pFFGmna07yE=
-----END CERTIFICATE-----
";

    #[test]
    fn certificates_are_read_once_for_many_connections() {
        let directory = testkit::tempdir().unwrap();
        let [one, other] = ["one.pem", "other.pem"].map(|name| directory.path().join(name));
        std::fs::write(&one, CERTIFICATE).unwrap();
        assert!(config(Some(&other)).is_err());
        std::fs::write(&other, CERTIFICATE).unwrap();
        let first = config(Some(&one)).unwrap();
        std::fs::remove_file(&one).unwrap();
        assert!(Arc::ptr_eq(&first, &config(Some(&one)).unwrap()));
        assert!(!Arc::ptr_eq(&first, &config(Some(&other)).unwrap()), "each file has its own");
    }
}
