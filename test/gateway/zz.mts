import { createServer } from 'node:http';
import ky from 'ky';
const s=createServer((q,r)=>{q.resume();q.on('end',()=>{r.setHeader('content-type','application/json');r.end('{"isValid":true}')})});
await new Promise(r=>s.listen(0,'127.0.0.1',r));
const url='http://127.0.0.1:'+s.address().port+'/verify';
const body={a:'x'.repeat(900)};
const opt=()=>{const c=new AbortController();return {method:'POST',redirect:'manual',signal:c.signal,headers:{'content-type':'application/json',accept:'application/json'},body:JSON.stringify(body)}};
const cases={
 fetchText: async()=>{await (await fetch(url,opt())).text()},
 fetchIter: async()=>{const r=await fetch(url,opt()); const cs=[]; for await(const c of r.body) cs.push(c)},
 fetchReader: async()=>{const r=await fetch(url,opt()); const rd=r.body.getReader(); for(;;){const {done}=await rd.read(); if(done)break}},
 fetchBuf: async()=>{await (await fetch(url,opt())).arrayBuffer()},
 kyText: async()=>{const r=await ky(url,{...opt(),timeout:false,retry:0,throwHttpErrors:false}); await r.text()},
 kyNoSignal: async()=>{const {signal,...o}=opt();const r=await ky(url,{...o,timeout:false,retry:0,throwHttpErrors:false}); await r.text()},
};
for (let k=0;k<2;k++) for (const [name,fn] of Object.entries(cases)) {
  const N=3000; let i=0; for (let w=0;w<300;w++) await fn();
  const c=process.cpuUsage(); 
  await Promise.all(Array.from({length:32},async()=>{while(i++<N) await fn();}));
  const cpu=process.cpuUsage(c); console.log(name, ((cpu.user+cpu.system)/N).toFixed(0)+'us cpu');
}
s.close(); s.closeAllConnections();
